package policytest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/clusters"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/cmd/client/preview"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

// runner runs tests and keeps the results of their cases.
type runner struct {
	streams cli.Streams
	input   *manifest.Reader
	items   []item
	errors  []manifest.Error // cases that could not be evaluated, and files that could not be read
}

// item is the result of a case: an item of -o json.
type item struct {
	File        string       `json:"file"`
	Name        string       `json:"name"`
	Passed      bool         `json:"passed"`
	Differences []difference `json:"differences"`
	Messages    []string     `json:"messages"`
}

// difference is a difference between a pod's result and the expected one.
type difference struct {
	Field string `json:"field"`
	Want  string `json:"want"`
	Got   string `json:"got"`
}

func (r *runner) run(ctx context.Context, t test) error {
	flags := clusters.Flags{Policies: t.paths(t.Policies), Nodes: t.paths(t.Nodes), Namespaces: t.paths(t.Namespaces),
		Kube: kube.Flags{System: api.SystemNamespace}, GuardImage: t.GuardImage}
	if !flags.FromFiles() {
		r.errors = append(r.errors, manifest.Error{At: t.at, Err: errors.New("policies and nodes are missing: name their files")})
		return nil
	}
	cluster, err := r.load(ctx, &flags)
	if err != nil {
		return err
	}
	engine := preview.New(cluster)
	for i := range t.Cases {
		if err := r.evaluate(ctx, engine, &t, &t.Cases[i]); err != nil {
			r.errors = append(r.errors, manifest.Error{At: t.at, Err: fmt.Errorf("%s: %w", t.Cases[i].Name, err)})
		}
	}
	return nil
}

// load reads the files that a test names. Its problems are the error, so that the answer holds them and the other tests
// go on.
func (r *runner) load(ctx context.Context, flags *clusters.Flags) (*clusters.Cluster, error) {
	var said bytes.Buffer
	quiet := r.streams
	quiet.Err = &said
	cluster, err := clusters.Load(ctx, flags, r.input, quiet)
	if _, told := errors.AsType[cli.ExitError](err); told {
		return nil, errors.New(strings.ReplaceAll(strings.TrimSpace(said.String()), "\n", "; "))
	}
	fmt.Fprint(r.streams.Err, said.String())
	if err != nil {
		return nil, fmt.Errorf("read policies and nodes: %w", err)
	}
	return cluster, nil
}

func (r *runner) evaluate(ctx context.Context, engine *preview.Engine, t *test, c *testCase) error {
	o, err := t.object(r.input, c)
	if err != nil {
		return err
	}
	results, err := engine.Evaluate(ctx, o)
	if err != nil {
		return err
	}
	if len(results) > 1 {
		return fmt.Errorf("%s has %d pod templates: a case takes one pod, or a workload with one", o, len(results))
	}
	result := results[0]
	one := item{File: t.at.File, Name: c.Name, Differences: c.Want.compare(result.Decision), Messages: []string{}}
	one.Passed = len(one.Differences) == 0
	if !one.Passed {
		for _, v := range result.Decision.Violations {
			one.Messages = append(one.Messages, "denied: "+v.String())
		}
	}
	r.items = append(r.items, one)
	return nil
}

// compare lists the differences of a decision from the expected one.
func (w *want) compare(d policies.Decision) []difference {
	found := []difference{}
	add := func(field, want, got string) {
		if want != "" && want != got {
			found = append(found, difference{field, want, cmp.Or(got, "-")})
		}
	}
	if w.Outcome != allowed || d.Outcome == policies.Denied {
		add("outcome", w.Outcome, string(d.Outcome))
	}
	var rules []string
	for _, v := range d.Violations {
		rules = append(rules, string(v.Rule))
	}
	if !slices.Contains(rules, w.Rule) {
		add("rule", w.Rule, strings.Join(rules, ", "))
	}
	if !strings.Contains(d.Message(), w.Message) {
		add("message", w.Message, d.Message())
	}
	given := slicesOf(d)
	if w.slice != (slice{}) && len(given) == 0 {
		given = map[string]slice{"": {}}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		got, prefix := given[name], name+" "
		if len(given) == 1 {
			prefix = ""
		}
		w.slice.compare(got, func(field, want, got string) { add(prefix+field, want, got) })
	}
	for _, name := range slices.Sorted(maps.Keys(w.Containers)) {
		if _, exists := given[name]; !exists && w.Containers[name] == (slice{}) {
			add(name, "a slice", "")
		}
		w.Containers[name].compare(given[name], func(field, want, got string) { add(name+" "+field, want, got) })
	}
	return found
}

func (s slice) compare(got slice, add func(field, want, got string)) {
	add("resource", s.Resource, got.Resource)
	add("memory", cli.Amount(s.Memory), cli.Amount(got.Memory))
	add("memoryLimit", cli.Amount(s.MemoryLimit), cli.Amount(got.MemoryLimit))
	add("strategy", string(s.Strategy), string(got.Strategy))
	add("pool", s.Pool, got.Pool)
	add("tier", string(s.Tier), string(got.Tier))
}

// slicesOf is the slice of each container.
func slicesOf(d policies.Decision) map[string]slice {
	given := map[string]slice{}
	if d.Promise == nil || d.Planned == nil {
		return given
	}
	for _, c := range d.Promise.Containers {
		one := slice{Resource: c.Resource, Memory: c.Slice, MemoryLimit: c.Limit,
			Strategy: d.Planned.Strategy, Pool: d.Planned.Pool, Tier: api.TierNone}
		for _, planned := range d.Planned.Containers {
			for _, t := range planned.Tiers {
				if planned.Name == c.Name && t.AtLeast(one.Tier) {
					one.Tier = t
				}
			}
		}
		given[c.Name] = one
	}
	return given
}
