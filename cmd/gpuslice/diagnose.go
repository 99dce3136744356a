package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/doctor"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/finding"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/kube"
	"github.com/gpuslice/gpuslice/policies/api"
)

const findingsHelp = `
Findings go to standard output, the worst first: level (problem, warning, note, ok), what was found, the fields it rests
on, and what mends it. -o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "%s", "items":
[...]}, in which an item has check, level, what, evidence (object, field, value) and mend. Names of checks stay.

Exit codes: 0 nothing above a note, 3 at least one problem, 4 warnings and no problem, 2 bad usage or no cluster,
1 internal error.`

const doctorLong = `Say what a cluster offers gpuslice and what stands in its way: nodes, labels and drivers, NVIDIA's device plugin and how
it shares, MPS, MIG, the toolkit's setting that lets any pod take any device, Pod Security, other webhooks on pods,
quotas that would stop counting, and your own rights. Where gpuslice is installed, how it does.

It can be asked before anything is installed, reads only, and says what it may not read.
`

const doctorExample = `  # before installing
  gpuslice doctor

  # what a pipeline stops at
  gpuslice doctor -o json | jq '.items[] | select(.level == "problem")'`

const verifyLong = `Prove through the API server that gpuslice answers: by a dry-run of a pod that has to come out in a slice, and of one
that has to be refused, in a namespace that a policy governs. Nothing is created. Then the same checks of the
installation as in doctor: webhook configurations and their authority, replicas, policies, priority.

The namespace is that of -n, else the first that is governed and enforced. It takes the right to create pods there, and
to read policies and nodes: what has to come out is what the core says.
`

const verifyExample = `  # after an installation or an upgrade
  gpuslice verify

  # a namespace that was just put under a policy
  gpuslice verify -n team-a`

// findingFlags say which cluster to look at, and how to print what was found.
type findingFlags struct {
	kube                    kube.Flags
	systemNamespace, output string
}

func (f *findingFlags) register(cmd *cobra.Command) {
	f.kube.Register(cmd.Flags())
	cmd.Flags().StringVar(&f.systemNamespace, "system-namespace", api.SystemNamespace, "`NAMESPACE` of the installation")
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "`FORMAT`: text, json")
	cmd.Args = noArguments
	cmd.PreRunE = func(*cobra.Command, []string) error { return checkOutput(f.output, []string{"text", "json"}) }
	completeNames(cmd, &f.kube, false)
}

func newDoctorCommand(s streams) *cobra.Command {
	var f findingFlags
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Say what a cluster offers, what stands in the way, and how the installation does",
		Long:    doctorLong + fmt.Sprintf(findingsHelp, "DoctorList"),
		Example: doctorExample,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, facts, err := f.gather(cmd.Context(), s)
			if err != nil {
				return err
			}
			return f.print(s, "DoctorList", doctor.Cluster(facts))
		},
	}
	f.register(cmd)
	return cmd
}

func newVerifyCommand(s streams) *cobra.Command {
	var f findingFlags
	cmd := &cobra.Command{
		Use:     "verify",
		Short:   "Prove by dry-runs that the webhook answers",
		Long:    verifyLong + fmt.Sprintf(findingsHelp, "VerifyList"),
		Example: verifyExample,
		RunE: func(cmd *cobra.Command, _ []string) error {
			connection, facts, err := f.gather(cmd.Context(), s)
			if err != nil {
				return err
			}
			all := doctor.Verify(cmd.Context(), connection.Client, facts, f.kube.Namespace)
			return f.print(s, "VerifyList", append(all, doctor.Installation(facts)...))
		},
	}
	f.kube.RegisterNamespace(cmd.Flags(), "to try (default: the first that is governed and enforced)")
	f.register(cmd)
	return cmd
}

// gather reads the cluster that the flags name.
func (f *findingFlags) gather(ctx context.Context, s streams) (*kube.Connection, *doctor.Facts, error) {
	connection, err := f.kube.Connect(buildVersion(), s.err)
	if err != nil {
		return nil, nil, err
	}
	facts, err := doctor.Gather(ctx, connection.Client, f.systemNamespace)
	if err != nil {
		return nil, nil, err
	}
	return connection, facts, nil
}

// print prints findings, and answers with the exit code that the worst of them has.
func (f *findingFlags) print(s streams, kind string, all []finding.Finding) error {
	if f.output == "json" {
		list := listing[finding.Finding]{APIVersion: outputVersion, Kind: kind, Items: listOf(all), Errors: []errorPrinted{}}
		if err := printJSON(s.out, list); err != nil {
			return err
		}
		return exitOf(finding.Worst(all))
	}
	var paint func(finding.Level, string) string
	if colourful(s.out, s.getenv) {
		paint = levelColoured
	}
	if err := finding.Print(s.out, all, paint); err != nil {
		return err
	}
	return exitOf(finding.Worst(all))
}

func exitOf(level finding.Level) error {
	switch level {
	case finding.Problem:
		return exitError(exitRefused)
	case finding.Warning:
		return exitError(exitWarned)
	}
	return nil
}

func levelColoured(level finding.Level, text string) string {
	return map[finding.Level]string{finding.Problem: red, finding.Warning: yellow, finding.Note: cyan, finding.OK: green}[level] + text + reset
}
