package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	jsonpatch "gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/leader"
)

// ourConfiguration is the name of gpuslice's webhook configurations.
const ourConfiguration = "gpuslice"

// conditioned is the part that has a match condition more, that of pods without the label.
const conditioned = "nothing, but a condition"

// parts are what a slice's pod is created without, to see what each costs.
var parts = []struct {
	name  string
	leave func(pod *corev1.Pod)
}{
	{"nothing", func(*corev1.Pod) {}},
	{"the promise", func(pod *corev1.Pod) { delete(pod.Annotations, api.AnnotationPromise) }},
	{"the sidecar", func(pod *corev1.Pod) { pod.Spec.InitContainers = pod.Spec.InitContainers[:1] }},
	{"sidecar and check", func(pod *corev1.Pod) { pod.Spec.InitContainers = nil }},
	{"all but annotations", onlyAnnotations},
	{conditioned, func(*corev1.Pod) {}},
	{"nothing, once more", func(*corev1.Pod) {}}, // how far two measurements of the same are apart
}

func onlyAnnotations(pod *corev1.Pod) {
	pod.Spec.InitContainers, pod.Spec.Affinity, pod.Spec.Volumes, pod.Spec.Containers[0].Env = nil, nil, pod.Spec.Volumes[:1], nil
}

// TestPrintPartsOfASlice prints the CPU time that a create of a slice's pod takes of the API server, without one part after the other,
// and with a match condition. The patch is fixed, and a validating webhook follows that only answers.
func TestPrintPartsOfASlice(t *testing.T) {
	server := cluster.ForTest(t, cluster.Options{})
	pid, err := server.PID("kube-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	i := &install.Installation{Server: server}
	for k, p := range parts {
		namespace := partNamespace(k)
		if err := server.Namespace(t.Context(), namespace, nil); err != nil {
			t.Fatal(err)
		}
		register(t, server, namespace, patchWithout(t, p.leave))
		registerCheck(t, server, namespace)
		if p.name == conditioned {
			addCondition(t, server, namespace)
		}
		_, _ = load{namespace: namespace, pod: pod, sliced: true, flight: 10, n: 50}.create(t, i)
	}
	costs := make([]cost, len(parts))
	const flight, n = 10, 400
	for range rounds {
		for k := range parts {
			atRest(t, pid)
			before := cpuOf(t, pid)
			times, _ := load{namespace: partNamespace(k), pod: pod, sliced: true, flight: flight, n: n}.create(t, i)
			costs[k].server = append(costs[k].server, (cpuOf(t, pid)-before)/n)
			costs[k].times = append(costs[k].times, times...)
			remove(t, i, partNamespace(k))
		}
	}
	fmt.Printf("%-24s %10s %14s\n", "without", "p50", "API server CPU")
	for k, p := range parts {
		fmt.Printf("%-24s %10s %14s\n", p.name, costs[k].p50().Round(10*time.Microsecond), median(costs[k].server))
	}
}

// addCondition gives the webhook of a namespace our condition.
func addCondition(t *testing.T, server *cluster.APIServer, namespace string) {
	t.Helper()
	text, err := deploy.Files.ReadFile("50-webhooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var ours admissionregistrationv1.MutatingWebhookConfiguration
	if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096).Decode(&ours); err != nil {
		t.Fatal(err)
	}
	configurations := server.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	live, err := configurations.Get(t.Context(), "answers-"+namespace, metav1.GetOptions{})
	if err == nil {
		live.Webhooks[0].MatchConditions = ours.Webhooks[0].MatchConditions
		_, err = configurations.Update(t.Context(), live, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func partNamespace(k int) string { return "part-" + strconv.Itoa(k) }

// patchWithout answers each pod with what makes it the pod of a slice that lacks a part.
func patchWithout(t *testing.T, leave func(*corev1.Pod)) func(*admissionv1.AdmissionRequest) []byte {
	t.Helper()
	in, err := typical()
	if err != nil {
		t.Fatal(err)
	}
	return fixed(func(r *admissionv1.AdmissionRequest) []byte {
		raw, _, err := rawpod.Decode(r.Object.Raw)
		if err != nil {
			t.Error(err)
			return nil
		}
		in.Pod = raw.Pod
		after := policies.Decide(in).Rewrite(raw.Pod)
		leave(after)
		text, err := json.Marshal(after)
		if err != nil {
			t.Error(err)
		}
		operations, err := jsonpatch.CreatePatch(r.Object.Raw, text)
		if err != nil {
			t.Error(err)
		}
		patch, err := json.Marshal(operations)
		if err != nil {
			t.Error(err)
		}
		return patch
	})
}

// ourParts are what an installation is left without, to see what each costs a slice.
var ourParts = []struct {
	name   string
	before func(context.Context, *cluster.APIServer) error // the replica starts
	after  func(context.Context, kubernetes.Interface) error
}{
	{name: "nothing"},
	{name: "match conditions", after: withoutConditions},
	{name: "admission policies", after: withoutPolicies},
	{name: "the validating webhook", after: withoutValidation},
	{name: "a leader", before: withoutLeader},
	{name: "nothing, once more"},
}

// TestPrintPartsOfGpuslice prints what a create of a slice takes without one part of gpuslice after the other: in time, and in CPU time
// of the API server, of etcd and of gpuslice. Each part is missing on an API server of its own; the first line is the floor, a fixed patch
// and a validating webhook that only answers.
func TestPrintPartsOfGpuslice(t *testing.T) {
	cluster.Need(t)
	binary, err := install.Binary(t.Context(), t.TempDir(), "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	floor, costs := &partCost{}, make([]partCost, len(ourParts))
	installations := make([]*install.Installation, len(ourParts))
	for k, p := range ourParts {
		server := cluster.ForTest(t, cluster.Options{})
		if p.before != nil {
			if err := p.before(t.Context(), server); err != nil {
				t.Fatal(err)
			}
		}
		i, err := install.New(t.Context(), server, binary, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(i.Stop)
		setUp(t, i)
		if p.after != nil {
			if err := p.after(t.Context(), server.Client); err != nil {
				t.Fatal(err)
			}
		}
		creates(t, i, ours, 10, 400) // by then the API server has seen what is missing
		installations[k] = i
	}
	for range rounds {
		floor.measure(t, installations[0], checking)
		for k, i := range installations {
			costs[k].measure(t, i, ours)
		}
	}
	fmt.Printf("%-24s %10s %14s %10s %10s\n", "without", "p50", "API server CPU", "etcd CPU", "own CPU")
	floor.print("gpuslice: the floor")
	for k, p := range ourParts {
		costs[k].print(p.name)
	}
}

// partCost is a cost, and the CPU time of etcd.
type partCost struct {
	cost
	etcd []time.Duration
}

func (c *partCost) measure(t *testing.T, i *install.Installation, namespace string) {
	t.Helper()
	etcd, err := i.Server.PID("etcd")
	if err != nil {
		t.Fatal(err)
	}
	before, had := cpuOf(t, etcd), len(c.times)
	measure(t, i, map[string]*cost{"": &c.cost}, "", namespace, 10)
	c.etcd = append(c.etcd, (cpuOf(t, etcd)-before)/time.Duration(len(c.times)-had)) // with the pods' deletion
}

func (c *partCost) print(name string) {
	fmt.Printf("%-24s %10s %14s %10s %10s\n", name, c.p50().Round(10*time.Microsecond), median(c.server), median(c.etcd), median(c.own))
}

func withoutConditions(ctx context.Context, client kubernetes.Interface) error {
	mutating := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	validating := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	m, err := mutating.Get(ctx, ourConfiguration, metav1.GetOptions{})
	if err != nil {
		return err
	}
	v, err := validating.Get(ctx, ourConfiguration, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for k := range m.Webhooks {
		m.Webhooks[k].MatchConditions = nil
	}
	for k := range v.Webhooks {
		v.Webhooks[k].MatchConditions = nil
	}
	_, changed := mutating.Update(ctx, m, metav1.UpdateOptions{})
	_, err = validating.Update(ctx, v, metav1.UpdateOptions{})
	return errors.Join(changed, err)
}

func withoutPolicies(ctx context.Context, client kubernetes.Interface) error {
	return client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

func withoutValidation(ctx context.Context, client kubernetes.Interface) error {
	return client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, ourConfiguration, metav1.DeleteOptions{})
}

// withoutLeader gives the Lease to somebody else.
func withoutLeader(ctx context.Context, server *cluster.APIServer) error {
	if err := server.Namespace(ctx, api.SystemNamespace, nil); err != nil {
		return err
	}
	_, err := server.Client.CoordinationV1().Leases(api.SystemNamespace).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: leader.LeaseName},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new("nobody"), LeaseDurationSeconds: new(int32(3600)),
			AcquireTime: new(metav1.NowMicro()), RenewTime: new(metav1.NowMicro())},
	}, metav1.CreateOptions{})
	return err
}
