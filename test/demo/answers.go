package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// answers shows the webhook's answers to the samples, a line each.
func answers(ctx context.Context, o options, p programs, dir string, pods []sample, w io.Writer) (unexpected int, err error) {
	samples, err := sampleWorld(pods)
	if err != nil {
		return 0, err
	}
	a, err := ask(ctx, p.webhook, dir, samples)
	if err != nil {
		return 0, err
	}
	defer a.stop()
	fmt.Fprintf(w, "\n=== %d pods, and what the webhook answers to each\n\n", len(pods))
	var claimed claimTotals
	for _, s := range pods {
		got, err := a.answer(ctx, o, s, &claimed, w)
		if err != nil {
			return unexpected, fmt.Errorf("pod %s: %w", s.pod.GetName(), err)
		}
		if s.expect != "" && !strings.HasPrefix(got, s.expect) {
			unexpected++
			fmt.Fprintf(w, "    UNEXPECTED: it came out %s, its file expects %s\n", got, s.expect)
		}
	}
	if o.pod == "" {
		claimed.print(samples.published, w)
	}
	return unexpected, nil
}

// answer prints the answer to one sample, and returns it in the words of a sample's expect.
func (a *asked) answer(ctx context.Context, o options, s sample, claimed *claimTotals, w io.Writer) (string, error) {
	answer, err := a.Create(ctx, s.pod)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("%-22s", s.pod.GetName())
	warned := &warnings{answer.Warnings}
	if answer.Denied != nil {
		fmt.Fprintf(w, "%s denied: %s\n", name, answer.Denied.Message)
		warned.print(w)
		return deniedAs(*answer.Denied), nil
	}
	if err := a.server.Put(answer.Pod); err != nil { // it counts in its namespace's quota
		return "", err
	}
	planned, err := plannedOf(answer.Pod)
	if err != nil {
		return "", err
	}
	if planned == nil {
		fmt.Fprintf(w, "%s unchanged: %s\n", name, s.title)
		warned.print(w)
		return "unchanged", nil
	}
	var containers []string
	for _, c := range planned.Containers {
		containers = append(containers, c.Memory+" held by "+tierList(c.Tiers))
	}
	also, err := claimed.add(answer.Pod)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(w, "%s %s: %s%s\n", name, planned.Pool, strings.Join(containers, "; "), also)
	warned.print(w)
	if o.verbose {
		if err := diff(s.pod, answer.Pod, w); err != nil {
			return "", err
		}
		printPlanned(*planned, w)
	}
	return "mutated " + string(planned.Strategy), nil
}
