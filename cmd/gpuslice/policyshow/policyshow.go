// Package policyshow is the command that shows the effective policy of a namespace and where each value comes from.
package policyshow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/webhook/admission/budgets"
)

const long = `Show the effective policy of a namespace: that of the policy which governs it, by name, by selector or as the cluster's
default, tightened by the namespace's own document. FROM is the document that sets a value, or "default". Fields that no
document sets and whose default depends on device or pod are left out. If a policy is invalid, its last valid version
applies.

It takes the right to read the ConfigMaps of the system namespace and of the namespace, the namespace itself, and the webhook
configurations, which may leave it out. For who may not read the system namespace the webhook answers, which takes the right to
create pods in the namespace: FROM is then the governing policy for its defaults too, and what it says of namespaces and pools is
left out. --policies shows what files would come to, before they are applied.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "EffectivePolicy", ...}, with namespace, policy ("":
none governs the namespace, null: that is unknown), tenantPolicy, document (the policy as it holds), fields (each with field,
value and from), warnings and errors.`

const example = `  # what holds in my namespace, and who said so
  gpuslice policy show -n team-a

  # what would hold with these files
  gpuslice policy show -n team-a --policies policies/

  # the document alone
  gpuslice policy show -n team-a -o jsonpath='{.document}'`

// options are the command's flags.
type options struct {
	kube     kube.Flags
	output   cli.Output
	policies []string
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "show [-n NAMESPACE]",
		Short:   "Show the effective policy of a namespace, and where each value comes from",
		Long:    long,
		Example: example,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.policies, "policies", nil,
		"`FILE` or directory of policies, Namespace objects beside them, in the place of the cluster's; may be repeated")
	o.output.Register(cmd, cli.YAML, cli.JSONPath)
	o.kube.RegisterInstalled(cmd, s, "to show (default: the context's, else \"default\")")
	return cmd
}

// effective is the policy of a namespace: the document of -o json.
type effective struct {
	APIVersion   string          `json:"apiVersion"`
	Kind         string          `json:"kind"`
	Namespace    string          `json:"namespace"`
	Policy       *string         `json:"policy"`
	TenantPolicy string          `json:"tenantPolicy,omitempty"`
	Document     json.RawMessage `json:"document"`
	Fields       []field         `json:"fields"`
	Warnings     []string        `json:"warnings"`
	Errors       []cli.Error     `json:"errors"`

	source     string // of errors
	outOfScope bool   // the API server does not call the webhook for pods of the namespace
	broken     bool   // the namespace's own document cannot be used
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
		fmt.Fprintln(s.Err, cli.OneLine(e.Message))
	}
	answer := cli.Answer{Document: found, Page: func() *cli.Page { return pageOf(found, d.policiesUnread != nil && d.answer == nil) }}
	if err := o.output.Print(s.Out, answer); err != nil {
		return err
	}
	return cli.Tally{NoAnswer: len(found.Errors) > 0}.Exit()
}

// documents are those that a namespace's policy depends on.
type documents struct {
	source         string // "cluster" or "files"
	namespace      string
	scope          installed.Scope
	state          *corev1.ConfigMap // of the webhook; nil: there is none
	stateUnread    error
	maps           []*corev1.ConfigMap // of the policies, in a cluster
	labels         map[string]string
	policies       []manifest.Policy
	tenant         *manifest.Policy      // nil: there is none
	answer         *budgets.PolicyReport // of the webhook, where they may not be read; nil: none was needed, or it did not answer
	policiesUnread error                 // why the policies of the system namespace may not be read
	filesUnread    []error               // files that cannot be read: their namespaces are unknown
	warnings       []string
}

// effective merges the documents, as the webhook does.
func (d *documents) effective() (*effective, error) {
	e := &effective{APIVersion: config.APIVersion, Kind: "EffectivePolicy", Namespace: d.namespace, Document: json.RawMessage("null"),
		Fields: []field{}, Warnings: cli.NonNil(d.warnings), Errors: []cli.Error{}, source: d.source}
	if !d.scope.Includes(d.namespace, d.labels) {
		e.outOfScope, e.Policy = true, new(string)
		e.Warnings = append(e.Warnings, "the API server does not call the webhook for pods of the namespace, so they stay as they are")
		return e, nil
	}
	for _, p := range d.policies {
		for _, problem := range p.Problems {
			e.fail(fmt.Errorf("%s: %w", p.At, problem))
		}
	}
	if len(d.filesUnread) > 0 {
		for _, err := range d.filesUnread {
			e.fail(err)
		}
		e.fail(fmt.Errorf("namespace %s: unknown: a file cannot be read", d.namespace))
		return e, nil
	}
	if d.answer != nil {
		return e, e.takeAnswer(d.answer, d.tenant)
	}
	if d.policiesUnread != nil {
		e.fail(fmt.Errorf("%w; shown are the settings of the namespace's own document, which only tightens the policy that governs it",
			d.policiesUnread))
		return e, e.takeTenant(d.tenant)
	}
	authority, err := d.authority()
	if errors.Is(err, errUnknown) {
		e.fail(fmt.Errorf("namespace %s: %w", d.namespace, err))
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	e.Policy = new(string)
	if authority == nil {
		return e, nil
	}
	*e.Policy = authority.Name
	return e, d.merge(e, authority)
}

// merge tightens the policy of the namespace by the namespace's own document.
func (d *documents) merge(e *effective, authority *config.Policy) error {
	sources, merged := []source{}, authority
	if d.tenant != nil {
		tenant := config.TenantDocument{Name: d.tenant.Name, Policy: d.tenant.Policy, Problems: d.tenant.Problems}
		tightened, warnings := tenant.Tighten(authority)
		if merged = tightened; d.tenant.Policy == nil {
			e.failTenant(errors.New(strings.Join(warnings, "; ")))
			warnings = nil
		}
		e.Warnings = append(e.Warnings, warnings...)
	}
	if d.tenant != nil && d.tenant.Policy != nil {
		e.TenantPolicy = d.tenant.Name
		tenant, err := newSource(d.tenant, authority)
		if err != nil {
			return err
		}
		sources = append(sources, tenant)
	}
	for i := range d.policies {
		if p := d.inForce(i); p.Name == authority.Name {
			written, err := newSource(p, nil)
			if err != nil {
				return err
			}
			sources = append(sources, written)
			if len(p.Problems) > 0 {
				e.Warnings = append(e.Warnings, p.Name+" cannot be used, and its last good version holds")
			}
		}
	}
	return e.take(merged, sources)
}

func (e *effective) fail(err error) {
	e.Errors = append(e.Errors, cli.Error{Place: cli.Place{Source: e.source}, Message: err.Error()})
}

func (e *effective) failTenant(err error) {
	e.broken = true
	e.fail(err)
}

// takeTenant takes the settings of a tenant's own document.
func (e *effective) takeTenant(p *manifest.Policy) error {
	if p == nil {
		return nil
	}
	if p.Policy == nil {
		e.failTenant(fmt.Errorf("%s cannot be used: %w", p.Name, errors.Join(p.Problems...)))
		return nil
	}
	e.TenantPolicy = p.Name
	own, err := newSource(p, nil)
	if err != nil {
		return err
	}
	return e.take(p.Policy, []source{own})
}

// takeAnswer takes the policy of the webhook's decisions. It does not show which document sets a value: one that the
// namespace's own has too is taken for its.
func (e *effective) takeAnswer(answer *budgets.PolicyReport, own *manifest.Policy) error {
	authority, _, _ := strings.Cut(answer.Policy, config.TightenedBy)
	e.Policy = &authority
	if answer.Document == nil {
		return nil
	}
	sources := []source{}
	if own != nil && own.Policy != nil {
		e.TenantPolicy = own.Name
		tenant, err := newSource(own, nil)
		if err != nil {
			return err
		}
		if tenant.only, err = valuesOf(own.Policy); err != nil {
			return err
		}
		sources = append(sources, tenant)
	}
	merged := *answer.Document
	merged.Name = authority
	if answer.Tenant != nil {
		merged.TenantQuota = &answer.Tenant.Quota
	}
	if err := e.take(&merged, sources); err != nil {
		return err
	}
	for i := range e.Fields {
		if f := &e.Fields[i]; f.From == fromDefault {
			f.From = authority
		}
	}
	return nil
}

// pageOf shows the values.
func pageOf(e *effective, unread bool) *cli.Page {
	p := &cli.Page{}
	head := "namespace " + e.Namespace + ": "
	switch {
	case e.outOfScope:
		p.Line(head + "no policy is in force")
	case unread && e.broken:
		p.Line(head + "its own document cannot be used")
	case unread && e.TenantPolicy == "":
		p.Line(head + "it has no document of its own")
	case unread:
		p.Line(head + e.TenantPolicy)
	case e.Policy == nil:
		p.Line(head + "unknown: a policy cannot be used")
	case *e.Policy == "":
		p.Line(head + "no policy governs it, so its pods stay as they are")
	case e.TenantPolicy != "":
		p.Line(head + "policy " + *e.Policy + ", tightened by " + e.TenantPolicy)
	default:
		p.Line(head + "policy " + *e.Policy)
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
