package source

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/scrape"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// TestGPUs: what nodes of the scenarios have, of device plugins' labels and of drivers' ResourceSlices.
func TestGPUs(t *testing.T) {
	want := map[string]inventory.GPUs{
		"l4-timeslicing-renamed":    {Product: "NVIDIA-L4", Count: 1, Memory: 23034},
		"l4-granular-two-gpus":      {Product: "NVIDIA-L4", Count: 2, Memory: 23034},
		"a100-mig-mixed":            {Product: "NVIDIA-A100-SXM4-80GB", Count: 1, Memory: 81920, MIG: true},
		"a100-mig-single":           {Product: "NVIDIA-A100-SXM4-80GB", Count: 1, MIG: true, Derived: true},
		"gke-l4-mps":                {Product: "nvidia-l4", Count: 1, Memory: 23034},
		"unlabelled":                {}, // what the units are parts of is not known
		"nvidia-h100-shares-4":      {Product: "NVIDIA-H100-80GB-HBM3", Count: 2, Memory: 81559},
		"nvidia-h100-shares-memory": {Product: "NVIDIA-H100-80GB-HBM3", Count: 2, Memory: 81559},
	}
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]inventory.GPUs{}
	for _, s := range all {
		from := s.Source()
		byName := map[string]*corev1.Node{}
		for _, n := range from.Nodes {
			byName[n.Name] = n
		}
		r := &reader{out: inventory.New(time.Time{}), nodes: map[string]*inventory.Node{}}
		offered := from.Pools(config.PoolsSpec{}, nil)
		for i := range offered {
			r.addPool(&offered[i], byName, from.Slices)
		}
		for _, n := range r.nodes {
			name := strings.Join(append(slices.Clone(s.SliceFiles), s.NodeFiles...), " ")
			for of := range want {
				if len(s.SliceFiles) > 0 && s.SliceFiles[0] == of || len(s.SliceFiles) == 0 && name == of {
					found[of] = n.GPUs
				}
			}
		}
	}
	for name, w := range want {
		if found[name] != w {
			t.Errorf("%s: %+v, want %+v", name, found[name], w)
		}
	}
}

// TestResources: what a list or a sum has beyond what a snapshot can hold is its largest amount.
func TestResources(t *testing.T) {
	got := resources(corev1.ResourceList{"memory": resource.MustParse("16Pi"),
		"cpu": resource.MustParse("8E"), "pods": resource.MustParse("3")})
	got.Plus(inventory.Resources{"memory": 1, "pods": 2})
	if want := (inventory.Resources{"memory": inventory.MaxQuantity, "cpu": inventory.MaxQuantity, "pods": 5}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNumber: a label whose number a snapshot cannot hold is none, so that no node's label keeps a snapshot from being written.
func TestNumber(t *testing.T) {
	for label, want := range map[string]int{"8": 8, "1024": 1024, "1025": 0, "9999": 0, "99999999999999999999": 0, "-1": 0, "": 0, "8x": 0} {
		if got := number(label); got != want {
			t.Errorf("%q: %d, want %d", label, got, want)
		}
	}
}

// TestUsageOf: what a tenant's guard claims to use keeps no snapshot from being written.
func TestUsageOf(t *testing.T) {
	used, peak := int64(1), int64(math.MaxInt64)
	got := usageOf(&scrape.Usage{UsedBytes: &used, PeakBytes: &peak})
	if got.UsedBytes != 1 || got.PeakBytes != inventory.MaxQuantity {
		t.Errorf("%+v", got)
	}
	if got := usageOf(&scrape.Usage{UsedBytes: &peak}); got.UsedBytes != inventory.MaxQuantity || got.PeakBytes != inventory.MaxQuantity {
		t.Errorf("%+v", got)
	}
}

// TestUtilization: a guard's own figures keep no snapshot from being written either.
func TestUtilization(t *testing.T) {
	used, below := int64(-1), -0.5
	if got := usageOf(&scrape.Usage{UsedBytes: &used, Utilization: &below}); got.UsedBytes != 0 || got.Utilization != nil {
		t.Errorf("%+v", got)
	}
	for from, want := range map[float64]float64{0.5: 0.5, 7: 1, math.Inf(1): 1} {
		if got := usageOf(&scrape.Usage{UsedBytes: &used, Utilization: &from}); got.Utilization == nil || *got.Utilization != want {
			t.Errorf("%g: %v, want %g", from, got.Utilization, want)
		}
	}
	none := math.NaN()
	if got := usageOf(&scrape.Usage{UsedBytes: &used, Utilization: &none}); got.Utilization != nil {
		t.Errorf("NaN: %g", *got.Utilization)
	}
}

// TestLargePod: a pod that a snapshot cannot hold is left out of it, with a note.
func TestLargePod(t *testing.T) {
	labels := map[string]string{}
	for i := range 20_000 {
		labels[fmt.Sprint("label-", i)] = "value"
	}
	r := &reader{out: inventory.New(time.Time{}), err: io.Discard}
	for name, labels := range map[string]map[string]string{"large": labels, "small": {"a": "b"}} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: labels}}
		p.Spec.Containers = []corev1.Container{{Name: "main",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
				Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}
		r.addPod(p)
	}
	r.out.Trim()
	if len(r.out.Pods) != 1 || r.out.Pods[0].Name != "small" || len(r.out.Unread) != 1 ||
		!strings.Contains(r.out.Unread[0], "pods of namespace team are left out") {
		t.Errorf("%d pods, %q", len(r.out.Pods), r.out.Unread)
	}
	if err := inventory.Write(io.Discard, r.out); err != nil {
		t.Error(err)
	}
}

// TestManyLargePods: of a tenant's pods that together are more than a snapshot can hold some are left out, and none of others'.
func TestManyLargePods(t *testing.T) {
	var tolerations []corev1.Toleration
	for i := range 12_000 {
		tolerations = append(tolerations, corev1.Toleration{Key: fmt.Sprint(i)})
	}
	r := &reader{out: inventory.New(time.Time{}), err: io.Discard}
	add := func(namespace string, n int, tolerations []corev1.Toleration) {
		for i := range n {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("p", i)},
				Spec: corev1.PodSpec{Tolerations: tolerations}}
			p.Spec.Containers = []corev1.Container{
				{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}},
			}
			r.addPod(p)
		}
	}
	const others = 3000
	add("others", others, nil)
	add("hostile", 200, tolerations)
	r.out.Trim()
	if err := inventory.Write(io.Discard, r.out); err != nil {
		t.Fatal(err)
	}
	hostile := len(r.out.Pods) - others
	if hostile < 50 || hostile == 200 || len(r.out.Unread) != 1 ||
		!strings.Contains(r.out.Unread[0], fmt.Sprintf("the largest first (%d)", 200-hostile)) {
		t.Errorf("%d hostile pods stay, %q", hostile, r.out.Unread)
	}
}

// TestOthers: what is named like NVIDIA's resources and is no GPU of a pool is noted; GPUs, and what a pool offers, are not.
func TestOthers(t *testing.T) {
	r := &reader{out: inventory.New(time.Time{}), err: io.Discard, others: map[string]*others{},
		pools: []pools.Pool{{Resource: "nvidia.com/special"}}}
	for _, name := range []string{"cpu", "example.com/gpu", "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb",
		"nvidia.com/special", "nvidia.com/hostdev", "nvidia.com/gpumem"} {
		r.countOther(name, func(o *others) { o.nodes++ })
	}
	r.noteOthers()
	const want = "nvidia.com/gpumem (nodes: 1, pods: 0), nvidia.com/hostdev (nodes: 1, pods: 0)"
	if len(r.out.Notes) != 1 || !strings.HasSuffix(r.out.Notes[0], ": "+want) {
		t.Errorf("%q, want %q", r.out.Notes, want)
	}
}

// TestNotesOnPods: notes on a tenant's pods are few, however many pods are odd.
func TestNotesOnPods(t *testing.T) {
	r := &reader{out: inventory.New(time.Time{}), err: io.Discard}
	for i := range 30_000 {
		r.addPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "hostile", Name: fmt.Sprint("p", i),
			Annotations: map[string]string{api.AnnotationPromise: "{"}}})
	}
	r.addPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "odd",
		Annotations: map[string]string{api.AnnotationPromise: "{"}}})
	r.noteMore()
	if n := len(r.out.Unread); n > 30 || !strings.Contains(strings.Join(r.out.Unread, "\n"), "pod other/odd: ") ||
		!strings.Contains(r.out.Unread[n-1], "namespace hostile: notes on 29990 more pods") {
		t.Errorf("%d notes, %.300q", n, r.out.Unread[max(0, n-2):])
	}
	if err := inventory.Write(io.Discard, r.out); err != nil {
		t.Error(err)
	}
}

// TestRunningPodsStay: a pod that runs keeps its place, however large what it demands is: nodes with pods are not divided again.
func TestRunningPodsStay(t *testing.T) {
	var tolerations []corev1.Toleration
	for i := range 12_000 {
		tolerations = append(tolerations, corev1.Toleration{Key: fmt.Sprint(i)})
	}
	for name, c := range map[string]struct {
		pods        int
		tolerations []corev1.Toleration
	}{"one that is too large": {1, append(tolerations, tolerations...)}, "many": {200, tolerations}} {
		r := &reader{out: inventory.New(time.Time{}), err: io.Discard}
		r.out.Nodes = []inventory.Node{{Name: "n", Allocatable: inventory.Resources{"nvidia.com/gpu": 8}}}
		for i := range c.pods {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "hostile", Name: fmt.Sprint("p", i)},
				Spec: corev1.PodSpec{Tolerations: c.tolerations, NodeName: "n"}}
			p.Spec.Containers = []corev1.Container{
				{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}},
			}
			r.addPod(p)
		}
		r.out.Trim()
		if err := inventory.Write(io.Discard, r.out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(r.out.Pods) != c.pods || len(r.out.Unread) == 0 {
			t.Errorf("%s: %d of %d pods stay, %q", name, len(r.out.Pods), c.pods, r.out.Unread)
		}
	}
}

// TestForeignRequests: a kubelet runs pods with extended resources that its node does not have, as many as their author names.
func TestForeignRequests(t *testing.T) {
	requests := corev1.ResourceList{"cpu": resource.MustParse("1")}
	for i := range 3000 {
		requests[corev1.ResourceName(fmt.Sprintf("%0100d.example.com/r", i))] = resource.MustParse("1")
	}
	with := maps.Clone(requests)
	with["nvidia.com/gpu"] = resource.MustParse("1")
	gpu := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	for name, c := range map[string]struct {
		pods     int
		requests corev1.ResourceList
		owner    string
		promise  string
		gpus     int64
	}{
		"without GPUs":               {1, requests, "", "", 0},
		"with GPUs":                  {1, with, "", "", 1},
		"of a large owner":           {1, gpu, strings.Repeat("o", inventory.MaxItem), "", 1},
		"with a promise of less":     {1, gpu, "", fmt.Sprintf(forged, promise.Version, "main", -1, "p"), 1},
		"with a promise for no name": {1, gpu, "", fmt.Sprintf(forged, promise.Version, "", 1, "p"), 1},
		"promised a large pool":      {2500, gpu, "", fmt.Sprintf(forged, promise.Version, "main", 1, strings.Repeat("p", 60_000)), 2500},
	} {
		r := &reader{out: inventory.New(time.Time{}), err: io.Discard, nodes: map[string]*inventory.Node{}}
		n := r.node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("8"), "nvidia.com/gpu": resource.MustParse("8")}}})
		for i := range c.pods {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "hostile", Name: fmt.Sprint("p", i),
				Annotations: map[string]string{api.AnnotationPromise: c.promise}}, Spec: corev1.PodSpec{NodeName: "n"}}
			p.OwnerReferences = []metav1.OwnerReference{{Kind: c.owner, Name: c.owner, Controller: new(true)}}
			p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: c.requests}}}
			r.addPod(p)
		}
		r.out.Nodes = []inventory.Node{*n}
		r.out.Trim()
		if err := inventory.Write(io.Discard, r.out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		gpus := int64(0)
		for i := range r.out.Pods {
			gpus += r.out.Pods[i].Requests["nvidia.com/gpu"]
		}
		if gpus != c.gpus || c.gpus == 0 && n.Others["cpu"] != 1000 {
			t.Errorf("%s: %d GPUs are held, want %d; %v", name, gpus, c.gpus, n.Others)
		}
	}
}

// forged is a promise that no build writes: anybody can write one where no policy governs.
const forged = `{"v":%d,"request":{"containers":[{"name":%[2]q,"resource":"r","gpus":1}]},"containers":[{"name":%[2]q,"count":1}],` +
	`"planned":{"pool":%[4]q,"containers":[{"name":%[2]q,"compute":%[3]d}]}}`
