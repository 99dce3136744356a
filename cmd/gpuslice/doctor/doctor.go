package doctor

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/kube"
)

const long = `Check a cluster and the installation of gpuslice: nodes, labels and drivers, NVIDIA's device plugin and how it shares, MPS,
MIG, the toolkit's setting that lets any pod take any device, Pod Security, other webhooks on pods, quotas that would stop
counting, and your own rights. If gpuslice is installed, also reports its health.

It works before anything is installed, only reads, and reports what it may not read.
`

// findingsHelp ends the help of a command; its verb is the kind of the document.
const findingsHelp = `
Findings go to standard output, the worst first: level (problem, warning, note, ok), summary, the fields it rests on, and
the remedy. -o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "%s", "items": [...]}, in which
an item has check, level, summary, evidence (object, field, value) and remedy. Names of checks are stable.`

const example = `  # before installing
  gpuslice doctor

  # what stops a pipeline
  gpuslice doctor -o json | jq '.items[] | select(.level == "problem")'`

// Kinds of documents.
const (
	kindDoctor = "DoctorList"
	kindVerify = "VerifyList"
)

// options are the flags of doctor and verify.
type options struct {
	kube                    kube.Flags
	systemNamespace, output string
}

func (o *options) register(cmd *cobra.Command, s cli.Streams) {
	o.kube.Register(cmd.Flags())
	cli.SystemNamespaceFlag(cmd.Flags(), &o.systemNamespace)
	cli.OutputFlag(cmd.Flags(), &o.output, cli.TextOrJSON())
	cmd.Args = cli.NoArguments
	cmd.PreRunE = func(*cobra.Command, []string) error { return cli.CheckOutput(o.output, cli.TextOrJSON()) }
	o.kube.CompleteNamespaces(cmd, s)
}

// New returns the command doctor.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Check a cluster and the installation",
		Long:    long + fmt.Sprintf(findingsHelp, kindDoctor),
		Example: example,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, facts, err := o.gather(cmd.Context(), s)
			if err != nil {
				return err
			}
			return o.print(s, kindDoctor, examineCluster(facts))
		},
	}
	o.register(cmd, s)
	return cmd
}

// gather reads the cluster that the flags name.
func (o *options) gather(ctx context.Context, s cli.Streams) (*kube.Connection, *Facts, error) {
	connection, err := o.kube.Connect(s)
	if err != nil {
		return nil, nil, err
	}
	facts, err := gather(ctx, connection.Client, o.systemNamespace)
	return connection, facts, err
}

// print prints findings, and returns the exit code of the worst of them.
func (o *options) print(s cli.Streams, kind string, all []Finding) (err error) {
	if o.output == "json" {
		err = cli.PrintJSON(s.Out, cli.NewList(kind, all))
	} else {
		err = printFindings(s.Out, all, s.Painter())
	}
	if err != nil {
		return err
	}
	return exit(all)
}

func exit(all []Finding) error {
	t := cli.Tally{Denied: Worst(all) == Problem, Warned: Worst(all) == Warning}
	return t.Exit()
}
