package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/install"
)

// show creates every pod, prints its outcome, and returns how many differ from the expected one.
func show(ctx context.Context, i *install.Installation, pods []sample, verbose bool, w io.Writer) (unexpected int, err error) {
	for _, s := range pods {
		fmt.Fprintf(w, "\n=== %s\n    pod %s in namespace %s\n", s.title, s.pod.GetName(), s.namespace)
		got, err := create(ctx, i, s, verbose, w)
		if err != nil {
			return unexpected, err
		}
		if s.expect != "" && !strings.HasPrefix(got, s.expect) {
			unexpected++
			fmt.Fprintf(w, "    UNEXPECTED: it came out %s, its file expects %s\n", got, s.expect)
		}
	}
	fmt.Fprintf(w, "\n%d pods, %d unexpected\n", len(pods), unexpected)
	return unexpected, nil
}

// create creates the pod and prints the outcome, which it also returns in the words of a sample's expect.
func create(ctx context.Context, i *install.Installation, s sample, verbose bool, w io.Writer) (string, error) {
	warnings := &warnings{}
	after, err := i.Apply.Warning(warnings).Create(ctx, s.pod.DeepCopy(), metav1.CreateOptions{})
	warnings.print(w)
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return denial(status.Status(), w), nil
	}
	if err != nil {
		return "", fmt.Errorf("create pod %s: %w", s.pod.GetName(), err)
	}
	planned, err := plannedOf(after)
	if err != nil {
		return "", err
	}
	if planned == nil {
		fmt.Fprintln(w, "    left unchanged: the pod is as it was written")
		return "unchanged", nil
	}
	if verbose {
		if err := printDiff(ctx, i, s, after, w); err != nil {
			return "", err
		}
	}
	printPlanned(*planned, w)
	return "mutated " + string(planned.Strategy), nil
}

// plannedOf is the plan in a pod's annotation; nil where there is none.
func plannedOf(pod *unstructured.Unstructured) (*promise.Planned, error) {
	text, ok := pod.GetAnnotations()[api.AnnotationPlanned]
	if !ok {
		return nil, nil
	}
	var p promise.Planned
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("read %s: %w", api.AnnotationPlanned, err)
	}
	return &p, nil
}

// denial prints why the server denied, and returns the rule that the message begins with.
func denial(status metav1.Status, w io.Writer) string {
	fmt.Fprintf(w, "    denied: %s\n", status.Message)
	return deniedAs(status)
}

// deniedAs is a denial in the words of a sample's expect.
func deniedAs(status metav1.Status) string {
	if status.Details == nil {
		return "denied"
	}
	for _, c := range status.Details.Causes {
		return "denied " + string(c.Type)
	}
	return "denied"
}

func printPlanned(p promise.Planned, w io.Writer) {
	fmt.Fprintf(w, "    planned: %s on pool %s, enforcement %s\n", p.Strategy, p.Pool, p.Tier)
	for _, c := range p.Containers {
		fmt.Fprintf(w, "      %s: %s, held by %s\n", c.Name, c.Memory, tierList(c.Tiers))
	}
	for _, n := range p.Notes {
		fmt.Fprintf(w, "      note: %s\n", n)
	}
}

func tierList(tiers []api.Tier) string {
	if len(tiers) == 0 {
		return "nothing"
	}
	var names []string
	for _, t := range tiers {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

// printDiff prints gpuslice's changes: the created pod beside the same pod in a namespace without a policy.
func printDiff(ctx context.Context, i *install.Installation, s sample, after *unstructured.Unstructured, w io.Writer) error {
	plain := s.pod.DeepCopy()
	plain.SetNamespace("plain")
	before, err := i.Apply.Create(ctx, plain, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsInvalid(err) {
		fmt.Fprintln(w, "    (without gpuslice Kubernetes denies this pod; compared with what was written)")
		before = s.pod
	} else if err != nil {
		return fmt.Errorf("create the pod where no policy governs: %w", err)
	}
	return diff(before, after, w)
}

// diff prints how a pod changed.
func diff(before, after *unstructured.Unstructured, w io.Writer) error {
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(readable(before)), B: difflib.SplitLines(readable(after)), Context: 1})
	if err != nil {
		return fmt.Errorf("compare pods: %w", err)
	}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "+++") {
			fmt.Fprintln(w, "    "+line)
		}
	}
	return nil
}

// readable is a pod as YAML without what the server adds to every pod.
func readable(u *unstructured.Unstructured) string {
	u = u.DeepCopy()
	for _, path := range [][]string{{"status"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "creationTimestamp"},
		{"metadata", "managedFields"}, {"metadata", "namespace"}, {"metadata", "generation"}} {
		unstructured.RemoveNestedField(u.Object, path...)
	}
	annotations := u.GetAnnotations()
	if promise, ok := annotations[api.AnnotationPromise]; ok {
		annotations[api.AnnotationPromise] = fmt.Sprintf("(%d bytes: what the pod was given)", len(promise))
		annotations[api.AnnotationPlanned] = "(see below)"
		u.SetAnnotations(annotations)
	}
	withoutToken(u.Object["spec"])
	guardInShort(u)
	b, err := yaml.Marshal(u.Object)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// guardInShort keeps the parts of the guard's containers that distinguish them; kubectl shows the rest.
func guardInShort(u *unstructured.Unstructured) {
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "initContainers")
	for i, e := range list {
		if c, ok := e.(map[string]any); ok && strings.HasPrefix(fmt.Sprint(c["name"]), "gpuslice-") {
			short := map[string]any{"name": c["name"], "image": c["image"], "args": c["args"]}
			if c["restartPolicy"] != nil {
				short["restartPolicy"] = c["restartPolicy"]
			}
			list[i] = short
		}
	}
	if len(list) > 0 {
		_ = unstructured.SetNestedSlice(u.Object, list, "spec", "initContainers")
	}
}

// withoutToken removes the volume of the pod's token and its mounts, whose names differ from pod to pod.
func withoutToken(node any) {
	switch n := node.(type) {
	case map[string]any:
		for key, value := range n {
			if list, ok := value.([]any); ok {
				var kept []any
				for _, e := range list {
					if m, ok := e.(map[string]any); ok && strings.HasPrefix(fmt.Sprint(m["name"]), "kube-api-access-") {
						continue
					}
					kept = append(kept, e)
				}
				if n[key] = kept; len(kept) == 0 {
					delete(n, key)
				}
			}
			withoutToken(n[key])
		}
	case []any:
		for _, e := range n {
			withoutToken(e)
		}
	}
}

// warnings collects the server's warnings.
type warnings struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (c *warnings) HandleWarningHeader(_ int, _ string, text string) { c.texts = append(c.texts, text) }

func (c *warnings) print(w io.Writer) {
	for _, text := range c.texts {
		fmt.Fprintf(w, "    warning: %s\n", text)
	}
}
