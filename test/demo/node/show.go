package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gpuslice/gpuslice/test/demo"
	"github.com/gpuslice/gpuslice/test/install"
)

// show creates every pod, prints its outcome, and returns how many differ from the expected one.
func show(ctx context.Context, i *install.Installation, pods []demo.Sample, verbose bool, w io.Writer) (unexpected int, err error) {
	for _, s := range pods {
		fmt.Fprintf(w, "\n=== %s\n    pod %s in namespace %s\n", s.Title, s.Pod.GetName(), s.Namespace)
		got, err := create(ctx, i, s, verbose, w)
		if err != nil {
			return unexpected, err
		}
		if s.Expect != "" && !strings.HasPrefix(got, s.Expect) {
			unexpected++
			fmt.Fprintf(w, "    UNEXPECTED: it came out %s, its file expects %s\n", got, s.Expect)
		}
	}
	fmt.Fprintf(w, "\n%d pods, %d unexpected\n", len(pods), unexpected)
	return unexpected, nil
}

// create creates the pod and prints the outcome, which it also returns in the words of a sample's expect.
func create(ctx context.Context, i *install.Installation, s demo.Sample, verbose bool, w io.Writer) (string, error) {
	warnings := &warnings{}
	after, err := i.Apply.Warning(warnings).Create(ctx, s.Pod.DeepCopy(), metav1.CreateOptions{})
	demo.PrintWarnings(warnings.texts, w)
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return denial(status.Status(), w), nil
	}
	if err != nil {
		return "", fmt.Errorf("create pod %s: %w", s.Pod.GetName(), err)
	}
	planned, err := demo.PlannedOf(after)
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
	demo.PrintPlanned(*planned, w)
	return "mutated " + string(planned.Strategy), nil
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

// printDiff prints gpuslice's changes: the created pod beside the same pod in a namespace without a policy.
func printDiff(ctx context.Context, i *install.Installation, s demo.Sample, after *unstructured.Unstructured, w io.Writer) error {
	plain := s.Pod.DeepCopy()
	plain.SetNamespace("plain")
	before, err := i.Apply.Create(ctx, plain, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsInvalid(err) {
		fmt.Fprintln(w, "    (without gpuslice Kubernetes denies this pod; compared with what was written)")
		before = s.Pod
	} else if err != nil {
		return fmt.Errorf("create the pod where no policy governs: %w", err)
	}
	return demo.Diff(before, after, w)
}

// warnings collects the server's warnings.
type warnings struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (c *warnings) HandleWarningHeader(_ int, _ string, text string) { c.texts = append(c.texts, text) }
