package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/config"
)

// answers are what became of all that -f names.
type answers struct {
	cluster *cluster
	results []result
	errors  []documentError
	tally   tally
}

// answer loads the cluster and judges every object of -f, in order. What cannot be read does not stop the others: it
// is said on standard error, and so are the reasons of each result.
func (f *subjectFlags) answer(ctx context.Context, s streams, reasons func(result) []string) (*answers, error) {
	r := &reader{stdin: s.in}
	e, err := f.ask(ctx, r, s)
	if err != nil {
		return nil, err
	}
	a := &answers{cluster: e.cluster}
	for _, d := range r.documents(f.filenames, maxManifest) {
		objects, unread := d.objects()
		for _, failed := range unread {
			a.fail(failed)
			fmt.Fprintln(s.err, failed)
		}
		for _, o := range objects {
			result, err := e.judge(ctx, o)
			if err != nil {
				a.fail(documentError{o.at, err})
				fmt.Fprintf(s.err, "%s: %v\n", o, err)
				continue
			}
			a.results = append(a.results, result)
			a.tally.refused = a.tally.refused || result.decision.Outcome == policies.Refused
			for _, line := range reasons(result) {
				fmt.Fprintln(s.err, line)
			}
		}
	}
	return a, nil
}

// ask makes the engine that the flags ask for: the core on files or on what a cluster holds, or an API server.
func (f *subjectFlags) ask(ctx context.Context, r *reader, s streams) (*engine, error) {
	if f.server {
		connection, err := connect(&f.kube, s.err)
		if err != nil {
			return nil, err
		}
		e := f.engine(&cluster{namespace: connection.Namespace})
		e.server, err = newServer(connection)
		return e, err
	}
	c, err := loadCluster(ctx, &f.clusterFlags, r, s.err)
	if err != nil {
		return nil, err
	}
	if len(f.policies) == 0 && !f.live() {
		fmt.Fprintln(s.err, "no --policies given: no policy governs any namespace")
	}
	return f.engine(c), nil
}

func (a *answers) fail(e documentError) {
	a.errors = append(a.errors, e)
	a.tally.failed(e)
}

// reasons are the lines that say what became of the object and why; none for objects that hold no pod.
func (r result) reasons() []string {
	d := r.decision
	if d.Why == whyNoPod {
		return nil
	}
	var lines []string
	say := func(format string, args ...any) {
		lines = append(lines, r.String()+": "+fmt.Sprintf(format, args...))
	}
	switch {
	case d.Outcome == policies.Refused:
		for _, v := range d.Violations {
			say("refused: %s", v)
		}
	case d.Outcome == policies.Rewritten:
		say("rewritten: %s", summary(d))
	case d.Outcome == policies.Voided:
		say("no slice (%s), and no device that it does not ask for", d.Why)
	case d.Mode == config.EnforceAudit && d.Would == policies.Refused:
		say("left alone in audit, would be refused: %s", d.Message())
	case d.Mode == config.EnforceAudit && d.Would == policies.Rewritten:
		say("left alone in audit, would be rewritten: %s", summary(d))
	case d.Mode == config.EnforceAudit && d.Would == policies.Voided:
		say("left alone in audit, would lose the devices that it does not ask for")
	case d.Would == policies.Refused:
		say("left alone in warn")
	default:
		say("left alone: %s", d.Why)
	}
	for _, w := range d.Warnings {
		say("warning: %s", w)
	}
	if r.template && d.Outcome == policies.Rewritten {
		say("the template is printed as its pods come out; in a cluster the pods are rewritten, and the %s stays as it was written", r.kind)
	}
	return lines
}

// summary says in one line what a pod gets.
func summary(d policies.Decision) string {
	if d.Planned == nil {
		return "as the policy says"
	}
	var slices []string
	for _, c := range d.Planned.Containers {
		slices = append(slices, strings.TrimSpace(c.Name+" "+c.Memory))
	}
	return fmt.Sprintf("%s under %s on %s, enforcement planned: %s", strings.Join(slices, ", "), d.Planned.Strategy, d.Planned.Pool, d.Planned.Tier)
}
