// Package policyshow is the command that shows the effective policy of a namespace and where each value comes from.
package policyshow

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/manifest"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/kube"
	"github.com/gpuslice/gpuslice/policies/config"
)

const long = `Show the effective policy of a namespace: that of the policy which governs it, by name, by selector or as the cluster's
default, tightened by the namespace's own document. FROM is the document that sets a value, or "default". Fields that no
document sets and whose default depends on device or pod are left out.

It takes the right to read the ConfigMaps of the system namespace and of the namespace, and the namespace itself. Who may not
read the system namespace sees the namespace's own document. --policies shows what files would come to, before they are
applied.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "EffectivePolicy", ...}, with namespace, policy ("":
none governs the namespace), tenantPolicy, document (the policy as it holds), fields (each with field, value and from),
warnings and errors.`

const example = `  # what holds in my namespace, and who said so
  gpuslice policy show -n team-a

  # what would hold with these files
  gpuslice policy show -n team-a --policies policies/

  # the document alone
  gpuslice policy show -n team-a -o jsonpath='{.document}'`

// options are the command's flags.
type options struct {
	kube            kube.Flags
	output          cli.Output
	systemNamespace string
	policies        []string
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "show [-n NAMESPACE]",
		Short:   "Show the effective policy of a namespace, and where each value comes from",
		Long:    long,
		Example: example,
		Args:    cli.NoArguments,
		PreRunE: func(*cobra.Command, []string) error { return o.output.Check() },
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	o.kube.Register(flags)
	o.kube.RegisterNamespace(flags, "to show (default: the context's, else \"default\")")
	flags.StringArrayVar(&o.policies, "policies", nil, "`FILE` or directory of policies, Namespace objects beside them, in the place of the cluster's; may be repeated")
	cli.SystemNamespaceFlag(flags, &o.systemNamespace)
	o.output.Register(flags, cli.YAML, cli.JSONPath)
	o.kube.CompleteNamespaces(cmd, s)
	return cmd
}

// effective is the policy of a namespace: the document of -o json.
type effective struct {
	APIVersion   string          `json:"apiVersion"`
	Kind         string          `json:"kind"`
	Namespace    string          `json:"namespace"`
	Policy       string          `json:"policy"`
	TenantPolicy string          `json:"tenantPolicy,omitempty"`
	Document     json.RawMessage `json:"document"`
	Fields       []field         `json:"fields"`
	Warnings     []string        `json:"warnings"`
	Errors       []cli.Error     `json:"errors"`
}

// field is a value and the document that sets it.
type field struct {
	Field string          `json:"field"`
	Value json.RawMessage `json:"value"`
	From  string          `json:"from"`
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	d, err := o.read(ctx, s)
	if err != nil {
		return err
	}
	found, err := d.effective()
	if err != nil {
		return err
	}
	for _, e := range found.Errors {
		fmt.Fprintln(s.Err, e.Message)
	}
	answer := cli.Answer{Document: found, Page: func() *cli.Page { return pageOf(found, d.policiesUnread != nil) }}
	if err := o.output.Print(s.Out, answer); err != nil {
		return err
	}
	tally := cli.Tally{NoAnswer: len(found.Errors) > 0}
	return tally.Exit()
}

// documents are those that a namespace's policy depends on.
type documents struct {
	namespace      string
	labels         map[string]string
	policies       []manifest.Policy
	tenant         *manifest.Policy // nil: there is none
	policiesUnread error            // why the policies of the system namespace may not be read
	warnings       []string
}

// effective merges the documents, as the webhook does.
func (d *documents) effective() (*effective, error) {
	e := &effective{APIVersion: config.APIVersion, Kind: "EffectivePolicy", Namespace: d.namespace, Document: json.RawMessage("null"),
		Fields: []field{}, Warnings: cli.NonNil(d.warnings), Errors: []cli.Error{}}
	for _, p := range d.policies {
		for _, problem := range p.Problems {
			e.fail(fmt.Errorf("%s: %w", p.At, problem))
		}
	}
	if d.policiesUnread != nil {
		e.fail(fmt.Errorf("%w; shown is what the namespace's own document sets, which only tightens the policy that governs it", d.policiesUnread))
		return e, e.takeTenant(d.tenant)
	}
	authority, err := config.NewBook(manifest.Governing(d.policies)).For(manifest.Namespace(d.namespace, d.labels))
	if err != nil || authority == nil {
		return e, err
	}
	e.Policy = authority.Name
	sources := []source{}
	merged := authority
	if d.tenant != nil {
		e.TenantPolicy = d.tenant.Name
		tenant := config.TenantDocument{Name: d.tenant.Name, Policy: d.tenant.Policy, Problems: d.tenant.Problems}
		var warnings []string
		merged, warnings = tenant.Tighten(authority)
		e.Warnings = append(e.Warnings, warnings...)
	}
	if d.tenant != nil && d.tenant.Policy != nil {
		tenant, err := newSource(d.tenant, authority)
		if err != nil {
			return nil, err
		}
		sources = append(sources, tenant)
	}
	for i := range d.policies {
		if p := &d.policies[i]; p.Name == authority.Name {
			written, err := newSource(p, nil)
			if err != nil {
				return nil, err
			}
			sources = append(sources, written)
		}
	}
	return e, e.take(merged, sources)
}

func (e *effective) fail(err error) {
	e.Errors = append(e.Errors, cli.Error{Place: cli.Place{Source: "cluster"}, Message: err.Error()})
}

// takeTenant takes what a tenant's own document sets.
func (e *effective) takeTenant(p *manifest.Policy) error {
	if p == nil || p.Policy == nil {
		return nil
	}
	e.TenantPolicy = p.Name
	own, err := newSource(p, nil)
	if err != nil {
		return err
	}
	return e.take(p.Policy, []source{own})
}

// pageOf shows the values.
func pageOf(e *effective, unread bool) *cli.Page {
	p := &cli.Page{}
	head := "namespace " + e.Namespace + ": "
	switch {
	case unread && e.TenantPolicy == "":
		p.Line(head + "it has no document of its own")
	case unread:
		p.Line(head + e.TenantPolicy)
	case e.Policy == "":
		p.Line(head + "no policy governs it, so its pods stay as they are")
	case e.TenantPolicy != "":
		p.Line(head + "policy " + e.Policy + ", tightened by " + e.TenantPolicy)
	default:
		p.Line(head + "policy " + e.Policy)
	}
	if len(e.Fields) > 0 {
		rows := [][]string{{"FIELD", "FROM", "VALUE"}}
		for _, f := range e.Fields {
			rows = append(rows, []string{f.Field, f.From, text(f.Value)})
		}
		p.Table("  ", rows)
	}
	for _, w := range e.Warnings {
		p.Line("warning: " + w)
	}
	return p
}

// text is a value as YAML would have it in one line.
func text(value json.RawMessage) string {
	var word string
	if json.Unmarshal(value, &word) == nil {
		return word
	}
	return string(value)
}
