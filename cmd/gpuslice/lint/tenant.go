package lint

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/manifest"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
)

// readGoverning reads the policies of --policies, and adds to rest the objects beside them. They are not linted, so any
// problem in them ends the command.
func (o *options) readGoverning(r *manifest.Reader, rest *manifest.Rest, s cli.Streams) ([]*config.Policy, error) {
	found, beside := manifest.PolicyReader{System: o.systemNamespace}.Read(r, o.policies)
	failed := false
	fail := func(err error) {
		fmt.Fprintln(s.Err, cli.OneLine(err.Error()))
		failed = true
	}
	for _, unread := range beside.Unread {
		fail(unread)
	}
	for _, p := range found {
		for _, problem := range p.Problems {
			fail(fmt.Errorf("%s: %w", p.At, problem))
		}
	}
	if failed {
		return nil, cli.ExitError(cli.ExitNoAnswer)
	}
	all := manifest.Governing(found)
	if len(o.policies) > 0 && len(all) == 0 {
		return nil, fmt.Errorf("--policies: no policy in it; %s", manifest.AcceptedPolicies)
	}
	rest.Objects = append(rest.Objects, beside.Objects...)
	return all, nil
}

// tenantLinter checks tenants' own documents against the policies that govern their namespaces.
type tenantLinter struct {
	namespace  string // of bare documents
	governing  []*config.Policy
	namespaces []api.Namespace
}

func (t tenantLinter) lint(p *manifest.Policy) error {
	if !p.Place.Tenant || p.Policy == nil {
		return nil
	}
	authority, err := t.authority(p)
	if err != nil {
		return err
	}
	if authority == nil {
		p.Warnings = append(p.Warnings, "no policy of the input governs its namespace, so it is checked against none; name governing policies with --policies")
		return nil
	}
	for _, problem := range authority.TightenErrors(p.Policy) {
		if p.TenantOf != "" {
			problem = fmt.Errorf("data[%s]: %w", api.PolicyKey, problem)
		}
		p.Problems = append(p.Problems, problem)
	}
	p.Warnings = append(p.Warnings, authority.TightenWarnings(p.Policy)...)
	return nil
}

// authority is the policy that governs a document's namespace, or nil.
func (t tenantLinter) authority(p *manifest.Policy) (*config.Policy, error) {
	name := p.TenantOf
	if name == "" {
		name = t.namespace
	}
	if name == "" {
		if len(t.governing) == 1 {
			return t.governing[0], nil
		}
		return nil, errors.New("several policies may govern: name the namespace of the document with -n NAMESPACE")
	}
	ns := manifest.Namespace(name, nil)
	if i := slices.IndexFunc(t.namespaces, func(known api.Namespace) bool { return known.Name == name }); i >= 0 {
		ns = t.namespaces[i]
	}
	return config.NewBook(t.governing).For(ns)
}
