package lint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
)

// readGoverning adds the governing policies: those of --policies, with the namespaces beside them, and those that are
// linted. Any problem of --policies, which is not linted, ends the command.
func (o *options) readGoverning(r *manifest.Reader, in *input, s cli.Streams) error {
	found, beside := manifest.PolicyReader{System: o.kube.System}.Read(r, o.policies)
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
		return cli.ExitError(cli.ExitNoAnswer)
	}
	all := manifest.Governing(found)
	if len(o.policies) > 0 && len(all) == 0 {
		return fmt.Errorf("--policies: no policy in it; %s", manifest.AcceptedPolicies)
	}
	in.governing = append(all, manifest.Governing(in.policies)...)
	in.namespaces = append(in.namespaces, manifest.Namespaces(beside.Objects)...)
	return nil
}

// lintTenant checks a tenant's own document against the policy that governs its namespace: of a bare document, the one
// that is given.
func (in *input) lintTenant(p *manifest.Policy, namespace string) error {
	if !p.Place.Tenant || p.Policy == nil {
		return nil
	}
	authority, err := in.authority(cmp.Or(p.TenantOf, namespace))
	if err != nil {
		return err
	}
	if authority == nil {
		p.Warnings = append(p.Warnings,
			"no policy of the input governs its namespace, so it is checked against none; name governing policies with --policies")
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

// authority is the policy that governs a namespace, or nil. A single policy governs where none is named.
func (in *input) authority(namespace string) (*config.Policy, error) {
	if namespace == "" {
		if len(in.governing) == 1 {
			return in.governing[0], nil
		}
		return nil, errors.New("several policies may govern: name the namespace of the document with -n NAMESPACE")
	}
	ns := manifest.Namespace(namespace, nil)
	if i := slices.IndexFunc(in.namespaces, func(known api.Namespace) bool { return known.Name == namespace }); i >= 0 {
		ns = in.namespaces[i]
	}
	return config.NewBook(in.governing).For(ns)
}
