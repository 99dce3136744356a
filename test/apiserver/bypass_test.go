package apiserver

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/install"
)

// bypassing runs the command line as the administrator of the server.
func bypassing(t *testing.T, i *install.Installation) func(args ...string) string {
	t.Helper()
	binary, err := install.Binary(t.Context(), t.TempDir(), "cmd/gpuslice")
	if err != nil {
		t.Fatal(err)
	}
	return func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), binary, append(args, "--kubeconfig", i.Server.Kubeconfig)...).CombinedOutput()
		if err != nil {
			t.Fatalf("gpuslice %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
}

// offender is a pod that is denied, and a word of who denies it.
type offender struct {
	pod *corev1.Pod
	by  string
}

// offenders are denied each by another part of gpuslice.
func offenders() []offender {
	wide := gpuPod("wide")
	wide.Labels = map[string]string{api.LabelMemory: "900Gi"}
	host := gpuPod("host")
	host.Spec.HostIPC = true
	return []offender{{wide, "fits no pool"}, {gpuPod("charged"), "exceeded quota"}, {host, "gpuslice-strict"}}
}

// awaitOffenders returns once all of them are denied, or none.
func awaitOffenders(t *testing.T, i *install.Installation, namespace string, denied bool) {
	t.Helper()
	for _, o := range offenders() {
		var last error
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			_, last = i.Server.Client.CoreV1().Pods(namespace).Create(ctx, o.pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if !denied {
				return last == nil, nil
			}
			return last != nil && strings.Contains(last.Error(), o.by), nil
		})
		if err != nil {
			t.Errorf("pod %s: denied is to be %t, got: %v", o.pod.Name, denied, last)
		}
	}
}

// setUpBypass prepares a namespace that is governed, without room in its quota, and strict.
func setUpBypass(t *testing.T, i *install.Installation, namespace string) {
	t.Helper()
	setUpReapply(t, i, namespace)
	noRoom(t, i, namespace)
	label(t, i, namespace, api.LabelEnforce, api.EnforceStrict)
	awaitOffenders(t, i, namespace, true)
}

// noRoom gives the namespace a quota that is full.
func noRoom(t *testing.T, i *install.Installation, namespace string) {
	t.Helper()
	document := "apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing]\nquota: {slices: 0}\nnamespaces: {names: [" + namespace + "]}\n"
	if err := i.Policy(t.Context(), namespace, []byte(document)); err != nil {
		t.Fatal(err)
	}
	if err := i.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func label(t *testing.T, i *install.Installation, namespace, key, value string) {
	t.Helper()
	change := []byte(`{"metadata":{"labels":{"` + key + `":"` + value + `"}}}`)
	if _, err := i.Server.Client.CoreV1().Namespaces().Patch(t.Context(), namespace,
		types.MergePatchType, change, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// wantCreate returns once creating the pod fails with these words; "": once it succeeds.
func wantCreate(t *testing.T, i *install.Installation, namespace string, pod *corev1.Pod, words string) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, last = i.Server.Client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return (last == nil) == (words == "") && (last == nil || strings.Contains(last.Error(), words)), nil
	})
	if err != nil {
		t.Errorf("pod %s in %s: want %q, got: %v", pod.Name, namespace, words, last)
	}
}

func TestBypass(t *testing.T) {
	t.Run("relaxes quota, failure policy and strict policy together", func(t *testing.T) {
		i := need(t)
		gpuslice := bypassing(t, i)
		setUpReapply(t, i, "not-bypassed")
		setUpBypass(t, i, "bypassed")
		said := gpuslice("bypass", "-n", "bypassed", "--duration", "1h", "--reason", "the test says so")
		if !strings.HasPrefix(said, "namespace bypassed is bypassed until ") {
			t.Errorf("said: %s", said)
		}
		awaitOffenders(t, i, "bypassed", false)
		made, err := i.Apply.Create(t.Context(), podOf(t, "sliced", "bypassed", manifests["label"]), metav1.CreateOptions{})
		if err != nil || made.GetAnnotations()[api.AnnotationPromise] == "" {
			t.Errorf("a pod that requests a slice gets none: %v", err)
		}
		if list := gpuslice("bypass", "--list"); !strings.Contains(list, "bypassed") ||
			!strings.Contains(list, "the test says so") || !strings.Contains(list, "admin") {
			t.Errorf("the list: %s", list)
		}
		err = i.Down(t.Context(), func() {
			wantCreate(t, i, "not-bypassed", gpuPod("down"), "failed calling webhook")
			wantCreate(t, i, "bypassed", gpuPod("down"), "")
		})
		if err != nil {
			t.Fatal(err)
		}
		gpuslice("bypass", "-n", "bypassed", "--end")
		awaitOffenders(t, i, "bypassed", true)
	})
	t.Run("is none with the value false", func(t *testing.T) {
		i := need(t)
		setUpBypass(t, i, "not-really")
		label(t, i, "not-really", api.LabelBypass, "true")
		awaitOffenders(t, i, "not-really", false)
		label(t, i, "not-really", api.LabelBypass, "false")
		awaitOffenders(t, i, "not-really", true)
	})
}

func TestBypassEnd(t *testing.T) {
	t.Run("a bypass ends by itself", func(t *testing.T) {
		i := need(t)
		gpuslice := bypassing(t, i)
		setUpBypass(t, i, "bypassed-briefly")
		gpuslice("bypass", "-n", "bypassed-briefly", "--duration", "2s", "--reason", "the test says so")
		awaitOffenders(t, i, "bypassed-briefly", false)
		var ns *corev1.Namespace
		err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true,
			func(ctx context.Context) (done bool, err error) {
				ns, err = i.Server.Client.CoreV1().Namespaces().Get(ctx, "bypassed-briefly", metav1.GetOptions{})
				if err != nil {
					return false, err
				}
				_, bypassed := policies.BypassOf(ns.Labels, nil)
				return !bypassed, nil
			})
		if err != nil {
			t.Fatalf("it does not end: %v", err)
		}
		if ns.Labels[api.LabelEnforce] != api.EnforceStrict || len(ns.Annotations) > 0 {
			t.Errorf("left on the namespace: labels %v, annotations %v", ns.Labels, ns.Annotations)
		}
		awaitOffenders(t, i, "bypassed-briefly", true)
		events, err := i.Server.Client.CoreV1().Events("bypassed-briefly").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		told := false
		for _, e := range events.Items {
			told = told || e.Reason == "GPUSliceBypassEnded"
		}
		if !told {
			t.Errorf("no Event tells of the end: %v", events.Items)
		}
	})
}

// TestFailOpen compares the entries of the validating webhook that fail closed with those that fail open.
func TestFailOpen(t *testing.T) {
	t.Run("gives up on outages and on nothing else", func(t *testing.T) {
		i := need(t)
		for _, namespace := range []string{"fails-closed", "fails-open"} {
			setUpReapply(t, i, namespace)
			noRoom(t, i, namespace)
		}
		label(t, i, "fails-open", api.LabelFail, api.FailOpen)
		for _, namespace := range []string{"fails-closed", "fails-open"} {
			wantCreate(t, i, namespace, gpuPod("charged"), "exceeded quota")
		}
		err := i.Down(t.Context(), func() {
			wantCreate(t, i, "fails-closed", gpuPod("down"), "failed calling webhook")
			wantCreate(t, i, "fails-open", gpuPod("down"), "")
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestStrictWithWebhook creates sliced pods of several kinds where both are in force, and changes
// one as its author would.
func TestStrictWithWebhook(t *testing.T) {
	t.Run("admits what the running webhook makes", func(t *testing.T) {
		i := need(t)
		setUpReapply(t, i, "strict-live")
		label(t, i, "strict-live", api.LabelEnforce, api.EnforceStrict)
		host := offenders()[2]
		wantCreate(t, i, "strict-live", host.pod, host.by)
		for name, manifest := range manifests {
			made, err := i.Apply.Create(t.Context(), podOf(t, name, "strict-live", manifest), metav1.CreateOptions{})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if made.GetAnnotations()[api.AnnotationPromise] == "" {
				t.Errorf("%s: it got no slice", name)
			}
		}
		// The mutating webhook puts back what a tenant changes, so strictness has nothing to deny.
		for name, change := range map[string]string{
			"an image":          `[{"op":"replace","path":"/spec/containers/0/image","value":"example.test/app:2"}]`,
			"our annotation":    `[{"op":"replace","path":"/metadata/annotations/gpuslice.dev~1planned","value":"{}"}]`,
			"the guard's image": `[{"op":"replace","path":"/spec/initContainers/1/image","value":"example.test/evil"}]`,
		} {
			if _, err := i.Server.Client.CoreV1().Pods("strict-live").Patch(t.Context(), "label", types.JSONPatchType,
				[]byte(change), metav1.PatchOptions{}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		pod, err := i.Server.Client.CoreV1().Pods("strict-live").Get(t.Context(), "label", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if pod.Spec.Containers[0].Image != "example.test/app:2" || pod.Annotations[api.AnnotationPlanned] == "{}" ||
			pod.Spec.InitContainers[1].Image == "example.test/evil" {
			t.Errorf("the live pod: %s, %s, %s", pod.Spec.Containers[0].Image,
				pod.Annotations[api.AnnotationPlanned], pod.Spec.InitContainers[1].Image)
		}
	})
}
