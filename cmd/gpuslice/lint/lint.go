// Package lint is the command that reports every problem of policy documents.
package lint

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
)

const long = `Report every problem of policy documents, each with its file and path: bare documents (apiVersion: gpuslice.dev/v1) and
ConfigMaps that hold one (label gpuslice.dev/policy: "true", key policy.yaml). Then report what two documents both claim:
two defaults, one namespace by name or, of the Namespace objects in the input, by selector. Other objects are ignored.
Without arguments, read the policies and namespaces of the current cluster.

A tenant's own document (a ConfigMap gpuslice-policy outside the system namespace) only tightens the policy that governs
its namespace, and is checked against it. --policies names governing policies beside those of the input, and makes bare
documents the tenants' own, of the namespace that -n names.

Problems and warnings go to standard output. -o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind":
"LintList", "items": [...], "errors": [...]}: an item has policy, where, problems and warnings.`

const example = `  # files, before they are applied
  gpuslice policy lint policies/

  # a tenant's own document, against the policies that govern it
  gpuslice policy lint gpuslice-policy.yaml --policies policies/ -n team-a

  # what governs the current cluster
  gpuslice policy lint`

// options are the command's flags.
type options struct {
	kube     kube.Flags
	output   string
	policies []string
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "lint [FILE|DIRECTORY|-...]",
		Short:   "Report every problem of policy documents",
		Long:    long,
		Example: example,
		Args:    cobra.ArbitraryArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args, s) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.policies, "policies", nil,
		"`FILE` or directory of policies that govern: the documents to lint are tenants' own; may be repeated")
	cli.OutputFlag(cmd, &o.output, cli.TextOrDocument())
	o.kube.RegisterInstalled(cmd, s, "of bare documents of tenants; not needed if one policy governs alone")
	return cmd
}

// item holds the problems of one policy, or of all together: an item of -o json.
type item struct {
	Policy   string   `json:"policy"`
	Where    string   `json:"where"`
	Problems []string `json:"problems"`
	Warnings []string `json:"warnings"`
}

// input is what is linted, and what it is linted against.
type input struct {
	policies   []manifest.Policy
	unread     []manifest.Error
	governing  []*config.Policy
	namespaces []api.Namespace
}

func (o *options) run(ctx context.Context, paths []string, s cli.Streams) error {
	r := &manifest.Reader{Stdin: s.In}
	in, err := o.read(ctx, r, paths, s)
	if err != nil {
		return err
	}
	if len(in.policies) == 0 && len(in.unread) == 0 {
		return fmt.Errorf("no policy to lint: %s", manifest.AcceptedPolicies)
	}
	if err := o.readGoverning(r, in, s); err != nil {
		return err
	}
	for i := range in.policies {
		if err := in.lintTenant(&in.policies[i], o.kube.Namespace); err != nil {
			return err
		}
	}
	for _, failed := range in.unread {
		fmt.Fprintln(s.Err, cli.OneLine(failed.Error()))
	}
	items := in.items()
	if err := o.print(s, items, in.unread); err != nil {
		return err
	}
	return exit(items, in.unread)
}

// read reads the policies of files, or those of the cluster if no file is named.
func (o *options) read(ctx context.Context, r *manifest.Reader, paths []string, s cli.Streams) (*input, error) {
	if len(paths) > 0 {
		found, rest := manifest.PolicyReader{System: o.kube.System, Tenants: len(o.policies) > 0}.Read(r, paths)
		return &input{policies: found, unread: rest.Unread, namespaces: manifest.Namespaces(rest.Objects)}, nil
	}
	c, err := o.kube.Connect(s)
	if errors.Is(err, kube.ErrNoCluster) {
		return nil, fmt.Errorf("nothing to lint: name files, directories or -; and %w", err)
	}
	if err != nil {
		return nil, err
	}
	maps, err := installed.Policies(ctx, c.Client, o.kube.System)
	if err != nil {
		return nil, err
	}
	found, err := installed.PolicyDocuments(maps, o.kube.System)
	if err != nil {
		return nil, err
	}
	namespaces, err := installed.Namespaces(ctx, c.Client)
	return &input{policies: found, namespaces: namespaces}, err
}

// items collects the problems of each policy, and then between them.
func (in *input) items() []item {
	items := []item{}
	for _, p := range in.policies {
		one := item{Policy: p.Name, Where: p.At, Problems: []string{}, Warnings: cli.NonNil(p.Warnings)}
		for _, problem := range p.Problems {
			one.Problems = append(one.Problems, problem.Error())
		}
		items = append(items, one)
	}
	once, repeated := oncePerName(in.policies)
	problems, warnings := conflicts(manifest.Governing(once), in.namespaces)
	if problems = append(repeated, problems...); len(problems)+len(warnings) > 0 {
		items = append(items, item{Where: "policies together", Problems: cli.NonNil(problems), Warnings: cli.NonNil(warnings)})
	}
	return items
}

func (o *options) print(s cli.Streams, items []item, unread []manifest.Error) error {
	if cli.IsDocument(o.output) {
		return cli.PrintDocument(s.Out, o.output, cli.NewList("LintList", items, manifest.Printed(unread)...))
	}
	policies, problems, warnings := 0, 0, 0
	for _, one := range items {
		if one.Policy != "" {
			policies++
		}
		for _, problem := range one.Problems {
			fmt.Fprintf(s.Out, "%s: %s\n", cli.OneLine(one.Where), cli.OneLine(problem))
		}
		for _, warning := range one.Warnings {
			fmt.Fprintf(s.Out, "%s: warning: %s\n", cli.OneLine(one.Where), cli.OneLine(warning))
		}
		problems, warnings = problems+len(one.Problems), warnings+len(one.Warnings)
	}
	fmt.Fprintf(s.Err, "policies: %d, problems: %d, warnings: %d\n", policies, problems, warnings)
	return nil
}

// exit is the exit code of the findings.
func exit(items []item, unread []manifest.Error) error {
	var t cli.Tally
	for _, failed := range unread {
		t.Failed(failed)
	}
	for _, one := range items {
		t.Denied = t.Denied || len(one.Problems) > 0
		t.Warned = t.Warned || len(one.Warnings) > 0
	}
	return t.Exit()
}
