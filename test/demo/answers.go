package demo

import (
	"fmt"
	"io"
	"strings"
)

// answers shows what becomes of the samples, a line each.
func answers(o Options, pods []Sample, w io.Writer) (unexpected int, err error) {
	known, err := sampleWorld()
	if err != nil {
		return 0, err
	}
	published, err := sharedByMemory()
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(w, "\n=== %d pods, and what gpuslice decides about each\n\n", len(pods))
	if o.Pod != "" {
		fmt.Fprintf(w, "By the policies and nodes of this demonstration (test/demo/policies; A100, L4, T4 and H100). By yours, after make build:\n"+
			"  kubectl get nodes -o yaml > nodes.yaml; bin/gpuslice explain -f %s --policies FILE --nodes nodes.yaml\n\n", o.Pod)
	}
	var claimed claimTotals
	for _, s := range pods {
		got, err := known.answer(o, s, &claimed, w)
		if err != nil {
			return unexpected, fmt.Errorf("pod %s: %w", s.Pod.GetName(), err)
		}
		if s.Expect != "" && !strings.HasPrefix(got, s.Expect) {
			unexpected++
			fmt.Fprintf(w, "    UNEXPECTED: it came out %s, its file expects %s\n", got, s.Expect)
		}
	}
	if o.Pod == "" {
		claimed.print(published, w)
	}
	return unexpected, nil
}

// answer prints the answer to one sample, and returns it in the words of a sample's expect.
func (w *world) answer(o Options, s Sample, claimed *claimTotals, out io.Writer) (string, error) {
	answer, err := w.create(s.Pod)
	if err != nil {
		return "", err
	}
	name, why := fmt.Sprintf("%-22s", s.Pod.GetName()), s.Title
	if o.Pod != "" {
		name, why = fmt.Sprintf("%-22s", strings.TrimSpace(s.Pod.GetName()+" "+s.Template)), answer.reason
	}
	if answer.pod == nil {
		fmt.Fprintf(out, "%s denied: %s\n", name, answer.denied.Message())
		PrintWarnings(answer.warnings, out)
		return "denied " + answer.denied.Reason(), nil
	}
	planned, err := PlannedOf(answer.pod)
	if err != nil {
		return "", err
	}
	if planned == nil {
		fmt.Fprintf(out, "%s unchanged: %s\n", name, why)
		PrintWarnings(answer.warnings, out)
		return "unchanged", nil
	}
	var containers []string
	for _, c := range planned.Containers {
		containers = append(containers, c.Memory+" held by "+tierList(c.Tiers))
	}
	also, err := claimed.add(answer.pod)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(out, "%s %s: %s%s\n", name, planned.Pool, strings.Join(containers, "; "), also)
	PrintWarnings(answer.warnings, out)
	if o.Verbose {
		if err := Diff(s.Pod, answer.pod, out); err != nil {
			return "", err
		}
		PrintPlanned(*planned, out)
	}
	return "mutated " + string(planned.Strategy), nil
}
