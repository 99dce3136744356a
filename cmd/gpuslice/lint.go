package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/kube"
	"github.com/gpuslice/gpuslice/policies/api"
)

const lintLong = `Report every problem of policy documents, each with its file and path: bare documents (apiVersion: gpuslice.dev/v1) and
ConfigMaps that hold one (label gpuslice.dev/policy: "true", key policy.yaml). Then what two documents claim at once: two
defaults, one namespace by name or, of the Namespace objects in the input, by selector. Other objects are left out.

A tenant's own document (a ConfigMap gpuslice-policy outside the system namespace) is held against the policy that governs
its namespace: it only tightens. --under names policies beside those of the input, and makes bare documents the tenants'
own, of the namespace that -n names.
Without arguments the policies of the cluster are read, and its namespaces.

Problems and warnings go to standard output. -o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind":
"LintList", "items": [...], "errors": [...]}: an item has policy, where, problems and warnings.

Exit codes: 0 no problem, 3 at least one problem, 2 bad usage or input, 1 internal error. Warnings alone are 0.`

const lintExample = `  # files, before they are applied
  gpuslice policy lint policies/

  # a tenant's own document, held against what governs it
  gpuslice policy lint gpuslice-policy.yaml --under policies/ -n team-a

  # what governs the cluster at hand
  gpuslice policy lint`

func newPolicyCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Work with policy documents",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLintCommand(s))
	return cmd
}

// lintFlags say what to lint and how to print it.
type lintFlags struct {
	kube                    kube.Flags
	systemNamespace, output string
	under                   []string
}

func newLintCommand(s streams) *cobra.Command {
	var f lintFlags
	cmd := &cobra.Command{
		Use:     "lint [FILE|DIRECTORY|-...]",
		Short:   "Report every problem of policy documents",
		Long:    lintLong,
		Example: lintExample,
		Args:    func(*cobra.Command, []string) error { return checkOutput(f.output, []string{"text", "json"}) },
		RunE:    func(cmd *cobra.Command, args []string) error { return lint(cmd.Context(), &f, args, s) },
	}
	f.kube.Register(cmd.Flags())
	cmd.Flags().StringVar(&f.systemNamespace, "system-namespace", api.SystemNamespace, "`NAMESPACE` whose policy ConfigMaps govern")
	cmd.Flags().StringArrayVar(&f.under, "under", nil, "`FILE` or directory of policies that govern: the documents to lint are tenants' own; may be repeated")
	f.kube.RegisterNamespace(cmd.Flags(), "of bare documents of tenants; without it there may be one policy to hold them against")
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "`FORMAT`: text, json")
	return cmd
}

// linted is an item of policy lint -o json.
type linted struct {
	Policy   string   `json:"policy"`
	Where    string   `json:"where"`
	Problems []string `json:"problems"`
	Warnings []string `json:"warnings"`
}

func lint(ctx context.Context, f *lintFlags, paths []string, s streams) error {
	r := &reader{stdin: s.in}
	found, others, err := f.read(ctx, r, paths, s)
	if err != nil {
		return err
	}
	if len(found) == 0 && len(others.unread) == 0 {
		return fmt.Errorf("no policy to lint: %s", acceptedPolicies)
	}
	above, err := f.readUnder(r, &others, s)
	if err != nil {
		return err
	}
	t := tenantLinter{namespace: f.kube.Namespace, governing: append(above, governing(found)...), namespaces: namespacesAmong(others.objects)}
	for i := range found {
		if err := t.lint(&found[i]); err != nil {
			return err
		}
	}
	items := lintAll(found, others.objects)
	var total tally
	for _, failed := range others.unread {
		fmt.Fprintln(s.err, failed)
		total.failed(failed)
	}
	problems := 0
	for _, item := range items {
		problems += len(item.Problems)
	}
	total.refused = problems > 0
	if err := printLint(f, s, items, others.unread); err != nil {
		return err
	}
	if f.output == "text" {
		fmt.Fprintf(s.err, "policies: %d, problems: %d\n", len(found), problems)
	}
	return total.exit()
}

// read reads the policies of files, or those of the cluster where no file is named.
func (f *lintFlags) read(ctx context.Context, r *reader, paths []string, s streams) ([]policyDocument, leftOver, error) {
	if len(paths) > 0 {
		found, others := readPolicies(r, paths, policyReader{system: f.systemNamespace, tenants: len(f.under) > 0})
		return found, others, nil
	}
	connection, err := f.kube.Connect(buildVersion(), s.err)
	if errors.Is(err, kube.ErrNoCluster) {
		return nil, leftOver{}, fmt.Errorf("nothing to lint: name files, directories or -; and %w", err)
	}
	if err != nil {
		return nil, leftOver{}, err
	}
	return lintLive(ctx, connection, f.systemNamespace)
}

// lintAll collects what is wrong with each policy, and then between them.
func lintAll(found []policyDocument, beside []object) []linted {
	items := []linted{}
	for _, p := range found {
		item := linted{Policy: p.name, Where: p.at, Problems: []string{}, Warnings: listOf(p.warnings)}
		for _, problem := range p.problems {
			item.Problems = append(item.Problems, problem.Error())
		}
		items = append(items, item)
	}
	if problems, warnings := conflicts(governing(found), beside); len(problems)+len(warnings) > 0 {
		items = append(items, linted{Where: "policies together", Problems: listOf(problems), Warnings: listOf(warnings)})
	}
	return items
}

func printLint(f *lintFlags, s streams, items []linted, unread []documentError) error {
	if f.output == "json" {
		list := listing[linted]{APIVersion: outputVersion, Kind: "LintList", Items: items, Errors: errorsPrinted(unread)}
		return printJSON(s.out, list)
	}
	for _, item := range items {
		for _, problem := range item.Problems {
			fmt.Fprintf(s.out, "%s: %s\n", item.Where, problem)
		}
		for _, warning := range item.Warnings {
			fmt.Fprintf(s.out, "%s: warning: %s\n", item.Where, warning)
		}
	}
	return nil
}
