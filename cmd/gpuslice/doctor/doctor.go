package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
)

const long = `Check a cluster and the installation of gpuslice: nodes, labels and drivers; what NVIDIA's device plugin, GPU Operator, MIG
manager, container toolkit and MPS daemon are configured with; Pod Security, other webhooks on pods, quotas and limits that
do not do what they say, and your own rights. If gpuslice is installed, also reports its health.

It works before anything is installed, only reads, and reports what it may not read.

With -f it checks files instead, and reads no cluster: the output of kubectl get -o yaml, and bare configurations of the device
plugin or of the MIG manager. What the files lack is not checked. This makes files of a cluster:

`

// findingsHelp ends the help of a command; its verb is the kind of the document.
const findingsHelp = `
Findings go to standard output, the worst first: level (problem, warning, note, ok), summary, the fields it rests on, and
the remedy. -o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "%s", "items": [...]}, in which
an item has check, level, summary, evidence (object, field, value) and remedy. Names of checks are stable.`

const example = `  # before installing
  gpuslice doctor

  # a configuration of the device plugin, before it is applied
  gpuslice doctor -f shared-4.yaml

  # what stops a pipeline
  gpuslice doctor -o json | jq '.items[] | select(.level == "problem")'`

// Kinds of documents.
const (
	kindDoctor = "DoctorList"
	kindVerify = "VerifyList"
)

// options are the flags of doctor and verify.
type options struct {
	kube      kube.Flags
	output    string
	filenames []string // of doctor
}

func (o *options) register(cmd *cobra.Command, s cli.Streams, namespace string) {
	cli.OutputFlag(cmd, &o.output, cli.TextOrDocument())
	o.kube.RegisterInstalled(cmd, s, namespace)
}

// New returns the command doctor.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Check a cluster and the installation",
		Long:    long + indent(DumpCommand()) + fmt.Sprintf(findingsHelp, kindDoctor),
		Example: example,
		RunE: func(cmd *cobra.Command, _ []string) error {
			facts, err := o.facts(cmd.Context(), s)
			if err != nil {
				return err
			}
			return o.print(s, kindDoctor, examineCluster(facts))
		},
	}
	cmd.Flags().StringArrayVarP(&o.filenames, "filename", "f", nil,
		"`FILE` or directory to check in the place of a cluster, - for standard input; may be repeated")
	o.register(cmd, s, "")
	return cmd
}

// indent indents the lines of an example.
func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n" }

// facts reads files if the flags name any, else the cluster.
func (o *options) facts(ctx context.Context, s cli.Streams) (*Facts, error) {
	if len(o.filenames) == 0 {
		_, facts, err := o.gather(ctx, s)
		return facts, err
	}
	if o.kube.Named() {
		return nil, errors.New("-f checks files and reads no cluster: leave out -f, or --kubeconfig and --context")
	}
	facts, problems := readFiles(&manifest.Reader{Stdin: s.In}, o.filenames, o.kube.System)
	for _, problem := range problems {
		fmt.Fprintln(s.Err, problem)
	}
	if len(problems) > 0 {
		return nil, cli.ExitError(cli.ExitNoAnswer)
	}
	return facts, nil
}

// gather reads the cluster that the flags name.
func (o *options) gather(ctx context.Context, s cli.Streams) (*kube.Connection, *Facts, error) {
	connection, err := o.kube.Connect(s)
	if err != nil {
		return nil, nil, err
	}
	facts, err := gather(ctx, connection.Client, connection.Objects, o.kube.System)
	if err == nil {
		facts.Program = s.Version
	}
	return connection, facts, err
}

// print prints findings, and returns the exit code of the worst of them.
func (o *options) print(s cli.Streams, kind string, all []Finding) (err error) {
	if cli.IsDocument(o.output) {
		err = cli.PrintDocument(s.Out, o.output, cli.NewList(kind, all))
	} else {
		err = printFindings(s.Out, all, s.Painter())
	}
	if err != nil {
		return err
	}
	return exit(all)
}

func exit(all []Finding) error {
	return cli.Tally{Denied: Worst(all) == Problem, Warned: Worst(all) == Warning}.Exit()
}
