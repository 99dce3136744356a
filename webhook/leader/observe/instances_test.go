package observe

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
)

// TestInstances has claims of a pod that might get an instance: only what the scheduler gave this pod counts.
func TestInstances(t *testing.T) {
	for name, tt := range map[string]struct {
		request string
		owner   types.UID
		class   string // of what it asks for first
		tier    api.Tier
	}{
		"an instance":                  {"gpu/mig", "uid-1", "mig.nvidia.com", api.TierHardware},
		"a share":                      {"gpu/share", "uid-1", "mig.nvidia.com", api.TierGuard},
		"another pod's":                {"gpu/mig", "uid-2", "mig.nvidia.com", api.TierGuard},
		"a request of somebody else's": {"mig", "uid-1", "mig.nvidia.com", api.TierGuard},
		"a device under the name":      {"gpu/mig", "uid-1", "gpu.nvidia.com", api.TierGuard},
	} {
		t.Run(name, func(t *testing.T) {
			s := started(t, "claim")
			claim := s.claimed(tt.request)
			claim.OwnerReferences[0].UID = tt.owner
			claim.Spec.Devices.Requests[0].FirstAvailable[0].DeviceClassName = tt.class
			inLab(t, func(l *lab) {
				r := l.replica("a")
				defer r.stop()
				o := l.observed()
				if o.State != Enforced || o.Tier != tt.tier || (len(o.Better) > 0) != (tt.tier == api.TierHardware) {
					t.Errorf("observed %+v", o)
				}
				if got := l.pod().Annotations[api.AnnotationSummary]; got != s.promise.Summary(tt.tier) {
					t.Errorf("summary %q", got)
				}
				var want []string
				if tt.tier == api.TierHardware {
					want = []string{"Pod/train GPUSliceBetterThanPlanned"}
				}
				if diff := cmp.Diff(want, l.events()); diff != "" {
					t.Errorf("events (-want +got)\n%s", diff)
				}
			}, s.pod, s.node, claim)
		})
	}
}

// claimed is the claim that Kubernetes made for the pod, of which the scheduler allocated a request.
func (s *subject) claimed(request string) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.pod.Namespace, Name: "train-gpuslice-x",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: s.pod.Name, UID: s.pod.UID, Controller: new(true)}}}}
	claim.Spec = claims.Named(s.pod)[0].Spec.Spec
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: request, Driver: "gpu.nvidia.com", Pool: s.node.Name, Device: "gpu-0-mig-19-0-1"},
		}}}
	s.pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: s.promise.Containers[0].Claim, ResourceClaimName: &claim.Name}}
	return claim
}

// TestInstancesFromCache has a replica that begins to lead: of what the cache has, the API server is not asked.
func TestInstancesFromCache(t *testing.T) {
	for name, tt := range map[string]struct {
		phase     corev1.PodPhase
		cached    bool
		allocated bool // in the cache
		reads     int
	}{
		"in the cache":                     {corev1.PodRunning, true, true, 0},
		"older in the cache":               {corev1.PodRunning, true, false, 1},
		"not in the cache":                 {corev1.PodRunning, false, false, 1},
		"of a pod that ended":              {corev1.PodSucceeded, false, false, 0},
		"in the cache of a pod that ended": {corev1.PodFailed, true, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := started(t, "claim")
			s.pod.Status.Phase = tt.phase
			claim := s.claimed("gpu/mig")
			var kept *resourcev1.ResourceClaim
			if tt.cached {
				kept = claim.DeepCopy()
			}
			if tt.cached && !tt.allocated {
				kept.Status.Allocation = nil
			}
			inLab(t, func(l *lab) {
				l.claims = func(string, string) *resourcev1.ResourceClaim { return kept }
				r := l.replica("a")
				defer r.stop()
				reads := 0
				for _, a := range l.client.Actions() {
					if a.Matches("get", "resourceclaims") {
						reads++
					}
				}
				if reads != tt.reads {
					t.Errorf("read the claim %d times, want %d", reads, tt.reads)
				}
				if o := l.observed(); (o.Tier == api.TierHardware) != (tt.phase == corev1.PodRunning) {
					t.Errorf("observed %+v", o)
				}
			}, s.pod, s.node, claim)
		})
	}
}

// TestSignsBeforeReads: a promise is signed with the newest key though the pod's claim cannot be read.
func TestSignsBeforeReads(t *testing.T) {
	older, newer := bytes.Repeat([]byte("a"), 32), bytes.Repeat([]byte("b"), 32)
	s := started(t, "claim")
	promise.NewKeys(older).Sign(s.promise)
	s.pod.Annotations[api.AnnotationPromise] = s.promise.Encode()
	claim := s.claimed("gpu/mig")
	client := fake.NewClientset(s.pod)
	client.PrependReactor("get", "resourceclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("not now")
	})
	keys := promise.NewKeys(newer, older)
	c, errOfNew := New(Options{Client: client, Nodes: coreinformers.NewNodeInformer(client, 0, cache.Indexers{}),
		Keys:       func() promise.Keys { return keys },
		Registerer: prometheus.NewRegistry(), Log: logr.Discard()})
	from, errOfWatch := newWatch(client)
	kept, errOfPod := podcache.Of(s.pod, "")
	if err := errors.Join(errOfNew, errOfWatch, errOfPod, from.Pods.GetStore().Add(kept)); err != nil {
		t.Fatal(err)
	}
	at, err := newSession(c, from)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := at.gather(t.Context(), s.pod.Namespace+"/"+s.pod.Name); err == nil {
		t.Errorf("claim %s was read", claim.Name)
	}
	after, err := client.CoreV1().Pods(s.pod.Namespace).Get(t.Context(), s.pod.Name, metav1.GetOptions{})
	if err != nil || promise.NewKeys(newer).PromiseOf(after) == nil {
		t.Errorf("%v: the promise is not signed with the newest key", err)
	}
}

// TestManyInstances has as many containers as fit a pod, with names as long as may be.
func TestManyInstances(t *testing.T) {
	s := started(t, "claim")
	one, planned := s.promise.Containers[0], s.promise.Planned.Containers[0]
	s.promise.Containers, s.promise.Planned.Containers = nil, nil
	for i := range 64 {
		one.Name = fmt.Sprintf("%063d", i)
		planned.Name = one.Name
		s.promise.Containers = append(s.promise.Containers, one)
		s.promise.Planned.Containers = append(s.promise.Planned.Containers, planned)
		s.instances = append(s.instances, one.Name)
		s.pod.Status.ContainerStatuses = append(s.pod.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: one.Name, Started: new(true), State: running(noon)})
	}
	o := s.observe()
	if _, err := DecodeObservation(o.Encode()); err != nil || len(o.Better) != 1 ||
		!strings.Contains(o.Better[0], "and 56 more got MIG instances") {
		t.Errorf("%v: %d bytes: %q", err, len(o.Encode()), o.Better)
	}
}

// TestDeadGuardBesideAnInstance has a pod of which one container got an instance, and the other a share.
func TestDeadGuardBesideAnInstance(t *testing.T) {
	s := started(t, "claim")
	s.instances = []string{s.promise.Containers[0].Name}
	second, planned := s.promise.Containers[0], s.promise.Planned.Containers[0]
	second.Name, planned.Name = "second", "second"
	s.promise.Containers, s.promise.Planned.Containers = append(s.promise.Containers, second), append(s.promise.Planned.Containers, planned)
	s.guard().State = waiting("CrashLoopBackOff")
	if o := s.observe(); o.State != Degraded || o.Tier != api.TierNone || len(o.Reasons) == 0 {
		t.Errorf("%s %s: %q", o.State, o.Tier, o.Reasons)
	}
}
