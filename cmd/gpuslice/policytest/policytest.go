// Package policytest is the command that runs a user's own tests of policies: pods, and their expected results.
//
//	file -> test -> clusters.Load -> preview.Engine -> outcome, compared with what is wanted
package policytest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
)

const long = `Run your own tests of policies: pods, and what should become of them under policies and on nodes. It connects to no cluster.
Each case that fails is printed with a diff of what is wanted (-) and what would happen (+).

A test is a YAML document. Paths are relative to its file:

  apiVersion: cli.gpuslice.dev/v1
  kind: PolicyTest
  policies: [policies/]        # files or directories, as for gpuslice render --policies
  nodes: [nodes.yaml]          # as kubectl get nodes -o yaml prints them
  namespaces: [namespaces.yaml] # optional: Namespace objects, by whose labels policies select
  guardImage: gpuslice/guard   # optional: this is the default; none: plan without a guard
  cases:
  - name: a notebook gets the default slice
    namespace: team-notebooks  # of a pod that names none
    pod: notebook.yaml         # a file with a pod or a workload, or the object itself
    want:
      outcome: mutated         # allowed, denied, mutated, unchanged or devices-hidden
      memory: 4Gi

want has at least one of: outcome; rule and message, of a denial (its rule, and text in it); and of the slices resource, memory,
memoryLimit, strategy, pool and tier (the strongest that is planned), which hold for each container that gets one.
containers: {NAME: {memory: 4Gi}} is about one container. Other documents of a directory are left out.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "PolicyTestList", "items": [...], "errors": [...]}. An
item has file, name, passed, differences (each with field, want and got) and messages (why the pod is denied).`

const example = `  # every test of a directory
  gpuslice policy test -f tests/

  # the cases that fail, for tools
  gpuslice policy test -f tests/ -o json | jq '.items[] | select(.passed | not) | .name'`

// options are the command's flags.
type options struct {
	filenames []string
	output    string
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "test -f FILE|DIRECTORY|-",
		Short:   "Run your own tests of policies",
		Long:    long,
		Example: example,
		PreRunE: func(*cobra.Command, []string) error {
			if len(o.filenames) == 0 {
				return errors.New("nothing to test: name it with -f FILE, -f DIRECTORY or -f -")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.filenames, "filename", "f", nil,
		"`FILE`, directory (*.yaml, *.yml, *.json, recursively) or - for standard input; may be repeated")
	cli.OutputFlag(cmd, &o.output, cli.TextOrDocument())
	return cmd
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	input := &manifest.Reader{Stdin: s.In}
	tests, unread := readTests(input, o.filenames)
	if len(tests) == 0 && len(unread) == 0 {
		return fmt.Errorf("no test in %s: accepted: documents with apiVersion: %s and kind: %s (gpuslice policy test --help)",
			strings.Join(o.filenames, ", "), apiVersion, kind)
	}
	r := runner{streams: s, input: input, items: []item{}, errors: unread}
	for _, t := range tests {
		if err := r.run(ctx, t); err != nil {
			r.errors = append(r.errors, manifest.Error{At: t.at, Err: err})
		}
	}
	for _, failed := range r.errors {
		fmt.Fprintln(s.Err, cli.OneLine(failed.Error()))
	}
	if err := r.print(o.output); err != nil {
		return err
	}
	return r.exit()
}

// print prints the results of the cases.
func (r *runner) print(output string) error {
	if cli.IsDocument(output) {
		return cli.PrintDocument(r.streams.Out, output, cli.NewList("PolicyTestList", r.items, manifest.Printed(r.errors)...))
	}
	paint, page, failed := r.streams.Painter(), &cli.Page{}, 0
	for _, i := range r.items {
		if i.Passed {
			page.PaintedLine(paint, cli.Green, "ok    ", i.File+": "+i.Name)
			continue
		}
		failed++
		page.PaintedLine(paint, cli.Red, "FAIL  ", i.File+": "+i.Name)
		for _, d := range i.Differences {
			page.PaintedLine(paint, cli.Red, "      - "+d.Field+": "+d.Want, "")
			page.PaintedLine(paint, cli.Green, "      + "+d.Field+": "+d.Got, "")
		}
		for _, m := range i.Messages {
			page.Line("      " + m)
		}
	}
	if err := page.Print(r.streams.Out); err != nil {
		return err
	}
	fmt.Fprintf(r.streams.Err, "cases: %d, failed: %d\n", len(r.items), failed)
	return nil
}

// exit is the exit code of the cases' results.
func (r *runner) exit() error {
	var t cli.Tally
	for _, failed := range r.errors {
		t.Failed(failed)
	}
	for _, i := range r.items {
		t.Denied = t.Denied || !i.Passed
	}
	return t.Exit()
}
