package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
)

// readUnder reads the policies of --under. They are not linted, so any problem of theirs ends the command.
func (f *lintFlags) readUnder(r *reader, others *leftOver, s streams) ([]*config.Policy, error) {
	found, beside := readPolicies(r, f.under, policyReader{system: f.systemNamespace})
	bad := false
	say := func(err error) {
		fmt.Fprintln(s.err, err)
		bad = true
	}
	for _, failed := range beside.unread {
		say(failed)
	}
	for _, p := range found {
		for _, problem := range p.problems {
			say(fmt.Errorf("%s: %w", p.at, problem))
		}
	}
	if bad {
		return nil, exitError(exitInput)
	}
	all := governing(found)
	if len(f.under) > 0 && len(all) == 0 {
		return nil, fmt.Errorf("--under: no policy in it; %s", acceptedPolicies)
	}
	others.objects = append(others.objects, beside.objects...)
	return all, nil
}

// tenantLinter holds tenants' own documents against the policies that govern their namespaces.
type tenantLinter struct {
	namespace  string // of bare documents
	governing  []*config.Policy
	namespaces []api.Namespace
}

func (t tenantLinter) lint(p *policyDocument) error {
	if p.place != config.PlaceTenant || p.policy == nil {
		return nil
	}
	authority, err := t.authority(p)
	if err != nil {
		return err
	}
	if authority == nil {
		p.warnings = append(p.warnings, "no policy of the input governs its namespace, so it is held against none; name policies with --under")
		return nil
	}
	for _, problem := range config.Widenings(authority, p.policy) {
		if p.tenantOf != "" {
			problem = fmt.Errorf("data[%s]: %w", api.PolicyKey, problem)
		}
		p.problems = append(p.problems, problem)
	}
	return nil
}

// authority is the policy that governs a document's namespace, or nil.
func (t tenantLinter) authority(p *policyDocument) (*config.Policy, error) {
	name := p.tenantOf
	if name == "" {
		name = t.namespace
	}
	if name == "" {
		if len(t.governing) == 1 {
			return t.governing[0], nil
		}
		return nil, errors.New("several policies may govern: say with -n NAMESPACE whose document it is")
	}
	ns := namespaceOf(name, nil)
	if i := slices.IndexFunc(t.namespaces, func(known api.Namespace) bool { return known.Name == name }); i >= 0 {
		ns = t.namespaces[i]
	}
	return config.NewBook(t.governing).For(ns)
}
