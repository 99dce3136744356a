package watcher

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/boundedtest"
	"github.com/gpuslice/gpuslice/test/clustertest"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

func amounts(prefix string, n int) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range boundedtest.Texts(n, 60) {
		out[corev1.ResourceName(prefix+name)] = resource.MustParse("1")
	}
	return out
}

// TestSlimIsSmall: little is kept of the largest objects that the API server takes, whoever wrote them.
func TestSlimIsSmall(t *testing.T) {
	for name, c := range map[string]struct {
		keep   func(runtime.Object) (runtime.Object, int)
		object func(i int) runtime.Object
		most   int
	}{
		"namespace": {slimNamespace, func(i int) runtime.Object {
			return &corev1.Namespace{ObjectMeta: boundedtest.Meta(i, boundedtest.Largest-1024)}
		}, 2 << 10},
		"namespace with as many labels as are kept": {slimNamespace, func(int) runtime.Object {
			ns := &corev1.Namespace{ObjectMeta: boundedtest.Meta(1, 0)}
			for _, key := range boundedtest.Texts(cluster.MaxLabels/12, 11) {
				ns.Labels[key] = "v"
			}
			return ns
		}, 192 << 10},
		"tenant's document": {slimTenant, func(i int) runtime.Object {
			m := &corev1.ConfigMap{ObjectMeta: boundedtest.Meta(i, 600<<10), Data: map[string]string{api.PolicyKey: strings.Repeat("#", 500<<10)},
				BinaryData: map[string][]byte{}}
			for _, key := range boundedtest.Texts(2000, 100) {
				m.BinaryData[key] = []byte("x")
			}
			return m
		}, 20 << 10},
		"LimitRange": {slimLimitRange, func(i int) runtime.Object {
			r := &corev1.LimitRange{ObjectMeta: boundedtest.Meta(i, 300<<10)}
			for range 40 {
				r.Spec.Limits = append(r.Spec.Limits, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: amounts("example.com/", 60),
					Min: amounts("requests.example.com/", 200), Default: amounts("nvidia.com/", 70), DefaultRequest: amounts("b.example.com/", 90),
					MaxLimitRequestRatio: amounts("a.example.com/", 90)})
			}
			return r
		}, 192 << 10},
		"node": {slim, func(i int) runtime.Object {
			n := &corev1.Node{ObjectMeta: boundedtest.Meta(i, 300<<10),
				Status: corev1.NodeStatus{Allocatable: amounts("example.com/", 3000), Capacity: amounts("example.com/", 3000)}}
			for range 3000 {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: strings.Repeat("t", 60), Effect: corev1.TaintEffectNoSchedule})
			}
			return n
		}, 64 << 10},
		"ResourceSlice": {slimClaim, func(i int) runtime.Object {
			s := &resourcev1.ResourceSlice{ObjectMeta: boundedtest.Meta(i, 300<<10)}
			s.Spec.Driver = "gpu.nvidia.com"
			for k := range 128 {
				d := resourcev1.Device{Name: fmt.Sprint("gpu-", k), AllowMultipleAllocations: new(true),
					Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}}
				for _, name := range boundedtest.Texts(32, 60) {
					d.Capacity[resourcev1.QualifiedName(name)] = resourcev1.DeviceCapacity{Value: resource.MustParse("1Gi"),
						RequestPolicy: &resourcev1.CapacityRequestPolicy{
							ValidValues: []resource.Quantity{resource.MustParse("1Gi"), resource.MustParse("2Gi")},
						}}
				}
				s.Spec.Devices = append(s.Spec.Devices, d)
			}
			return s
		}, 64 << 10},
	} {
		if got := boundedtest.KeptOf(t, c.keep, c.object); got > c.most {
			t.Errorf("%s: %d bytes are kept, want at most %d", name, got, c.most)
		}
	}
}

// TestLabelsNotRead: a namespace with more labels than are kept has no policy by mistake: decisions about its pods have an error.
func TestLabelsNotRead(t *testing.T) {
	s := cluster.ReadSnapshot(cluster.Objects{Policies: []*corev1.ConfigMap{clustertest.PolicyMap("default", 1, "limits: {perContainer: {memory: 8Gi}}")}})
	many := &corev1.Namespace{ObjectMeta: boundedtest.Meta(0, 700<<10)}
	many.Labels[api.LabelBypass] = "true"
	kept, _ := slimNamespace(many)
	ns := api.Namespace{Name: "team-a", Labels: kept.(*corev1.Namespace).Labels}
	if in := s.Input(ns); in.PolicyError == nil || in.Policy != nil || !strings.Contains(in.PolicyError.Error(), "remove labels") {
		t.Errorf("policy %v: %v", in.Policy, in.PolicyError)
	}
	if ns.Labels[api.LabelBypass] != "true" {
		t.Error("its bypass would not end")
	}
	few, _ := slimNamespace(&corev1.Namespace{ObjectMeta: boundedtest.Meta(1, 700<<10)})
	if in := s.Input(api.Namespace{Name: "team-a", Labels: few.(*corev1.Namespace).Labels}); in.PolicyError != nil || in.Policy == nil {
		t.Errorf("policy %v: %v", in.Policy, in.PolicyError)
	}
}

// TestSlimLimitRange: of too many resources those stay that decisions read.
func TestSlimLimitRange(t *testing.T) {
	list := amounts("requests.example.com/", 500)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, "nvidia.com/gpu"} {
		list[name] = resource.MustParse("2")
	}
	r := &corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod, Max: list},
		{Type: corev1.LimitTypeContainer, Max: list, Default: list}}}}
	kept, _ := slimLimitRange(r)
	limits := kept.(*corev1.LimitRange).Spec.Limits
	if len(limits) != 2 || len(limits[0].Max) != 4 || len(limits[1].Max) != 4 || len(limits[1].Default) != 4 {
		t.Errorf("%+v", limits)
	}
}
