package resign

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// signing is a pod and its promise as the installation signs it.
type signing struct {
	pod    *corev1.Pod
	text   string // of the annotation
	charge string
}

// skipped is a pod that is not signed.
type skipped struct {
	pod    *corev1.Pod
	reason string
}

// signings are the pods whose promises no known key signed.
type signings struct {
	signed  []signing
	skipped []skipped
}

// find looks at the living pods of a namespace, or of all for "".
func find(ctx context.Context, client kubernetes.Interface, system, namespace string) (*signings, error) {
	keys, err := installed.Keys(ctx, client, system)
	if err != nil {
		return nil, err
	}
	if !keys.Signs() {
		return nil, fmt.Errorf("the installation in namespace %s has no key yet: wait until a replica of the webhook is ready", system)
	}
	snapshot, err := installed.Snapshot(ctx, client, system)
	if err != nil {
		return nil, err
	}
	namespaces, err := installed.Namespaces(ctx, client)
	if err != nil {
		return nil, err
	}
	found := &signings{}
	for _, ns := range namespaces {
		if namespace != "" && ns.Name != namespace {
			continue
		}
		living, err := installed.LivingPods(ctx, client, []string{ns.Name})
		if err != nil {
			return nil, err
		}
		in := snapshot.Input(ns)
		for i := range living {
			found.add(keys, in, &living[i])
		}
	}
	return found, nil
}

// add adds a pod if no known key signed its promise.
func (s *signings) add(keys promise.Keys, in policies.Input, pod *corev1.Pod) {
	if pod.Annotations[api.AnnotationPromise] == "" || keys.PromiseOf(pod) != nil {
		return
	}
	text, reason := sign(keys, in, pod)
	if reason != "" {
		s.skipped = append(s.skipped, skipped{pod, reason})
		return
	}
	s.signed = append(s.signed, signing{pod: pod, text: text, charge: promise.ClaimedPromise(pod).Charge.Memory.Human()})
}

// sign is the annotation of a pod with a new signature, or why there is none.
func sign(keys promise.Keys, in policies.Input, pod *corev1.Pod) (text, reason string) {
	given := promise.ClaimedPromise(pod)
	switch {
	case given == nil:
		return "", "its promise cannot be read"
	case understated(pod, given):
		return "", "its promise charges less than its containers' slices together"
	case in.PolicyError != nil:
		return "", "the policy of its namespace cannot be used: " + in.PolicyError.Error()
	}
	in.Pod = pod.DeepCopy()
	in.Pod.Spec.NodeName, in.Pod.Status = "", corev1.PodStatus{QOSClass: pod.Status.QOSClass}
	if d := policies.Verify(in, given); d.IfEnforced == policies.Denied {
		return "", d.Message()
	}
	keys.Sign(given)
	if text = given.Encode(); promise.Unsigned(text) != promise.Unsigned(pod.Annotations[api.AnnotationPromise]) {
		return "", "another version of gpuslice wrote its promise"
	}
	return text, ""
}

// understated reports whether a promise charges less memory than the slices of the pod's containers: gpuslice made none so.
func understated(pod *corev1.Pod, given *promise.Promise) bool {
	var sum int64
	for _, c := range given.Containers {
		if slices.ContainsFunc(pod.Spec.Containers, func(of corev1.Container) bool { return of.Name == c.Name }) {
			sum += c.Slice.Bytes()
		}
	}
	return sum > given.Charge.Memory.Bytes()
}

// write writes the signature. The UID is part of the patch, so that a new pod of the same name is not written.
func (s signing) write(ctx context.Context, client kubernetes.Interface) error {
	patch, err := json.Marshal(
		map[string]any{"metadata": map[string]any{"uid": s.pod.UID, "annotations": map[string]string{api.AnnotationPromise: s.text}}})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	after, err := client.CoreV1().Pods(s.pod.Namespace).
		Patch(ctx, s.pod.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "gpuslice"})
	if err != nil {
		return fmt.Errorf("write annotation %s: %w", api.AnnotationPromise, err)
	}
	if after.Annotations[api.AnnotationPromise] != s.text {
		return fmt.Errorf("annotation %s was reverted", api.AnnotationPromise)
	}
	return nil
}

// page lists the pods, and the change of each.
func (s *signings) page() *cli.Page {
	p := &cli.Page{}
	if len(s.signed)+len(s.skipped) == 0 {
		p.Line("the keys of the installation signed the promise of every living pod: nothing to do")
		return p
	}
	rows := [][]string{{"POD", "CREATED", "MEMORY", "SIGNED"}}
	for _, one := range s.signed {
		rows = append(rows, []string{one.pod.Namespace + "/" + one.pod.Name, created(one.pod), one.charge, "yes"})
	}
	for _, one := range s.skipped {
		rows = append(rows, []string{one.pod.Namespace + "/" + one.pod.Name, created(one.pod), "", "no: " + one.reason})
	}
	p.Table("", rows)
	return p
}

func created(p *corev1.Pod) string { return p.CreationTimestamp.UTC().Format(time.RFC3339) }

// exit is the code of a command that leaves pods unsigned.
func (s *signings) exit() error {
	return cli.Tally{Denied: len(s.skipped) > 0}.Exit()
}
