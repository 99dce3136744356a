package promise

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// TestTooLong: the longest Promise that is given can be read once it is signed.
func TestTooLong(t *testing.T) {
	t.Parallel()
	of := func(value int) *Promise {
		return &Promise{Version: Version, Namespace: "a", Charge: quota.Charge{Slices: 1},
			Request:    api.Request{Explicit: true, Containers: []api.ContainerRequest{{Name: "c", GPUs: 1}}},
			Containers: []Container{{Name: "c", Count: 1, Env: []podspec.Variable{{Name: "A", Value: strings.Repeat("x", value)}}}}}
	}
	keys := NewKeys(make([]byte, minKey))
	most := of(0)
	keys.Sign(most)
	room := MaxText - len(most.Encode())
	for value, tooLong := range map[int]bool{0: false, room / 2: false, room: false, room + 1: true, 2 * room: true} {
		p := of(value)
		if v := p.TooLong(); (v != nil) != tooLong {
			t.Errorf("%d bytes of %d: %v", value, room, v)
		}
		keys.Sign(p)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Annotations: map[string]string{api.AnnotationPromise: p.Encode()}}}
		if (keys.PromiseOf(pod) == nil) != tooLong {
			t.Errorf("%d bytes of %d: it is trusted: %v", value, room, tooLong)
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	keys := NewKeys(make([]byte, minKey))
	for version, c := range map[int]struct{ read, trusted bool }{-1: {}, 0: {}, Version: {true, true}, Version + 1: {false, true}} {
		p := &Promise{Version: version, Namespace: "a", Charge: quota.Charge{Slices: 1}}
		keys.Sign(p)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Annotations: map[string]string{api.AnnotationPromise: p.Encode()}}}
		if _, err := Decode(p.Encode()); (err == nil) != c.read {
			t.Errorf("version %d: %v", version, err)
		}
		if got := ClaimedPromise(pod); (got != nil) != c.read {
			t.Errorf("version %d: claimed is %+v", version, got)
		}
		if got := keys.PromiseOf(pod); (got != nil) != c.trusted {
			t.Errorf("version %d: trusted is %+v", version, got)
		}
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	for count, read := range map[int64]bool{-1: false, 0: false, 1: true, quantity.MaxGPUs: true, quantity.MaxGPUs + 1: false} {
		p := &Promise{Version: Version, Request: api.Request{Explicit: true, Containers: []api.ContainerRequest{{Name: "c", GPUs: count}}},
			Containers: []Container{{Name: "c", Count: count}}}
		if _, err := Decode(p.Encode()); (err == nil) != read {
			t.Errorf("%d GPUs: %v", count, err)
		}
	}
}

func TestSoundClaim(t *testing.T) {
	t.Parallel()
	const template = "gpuslice-4396mi"
	for name, c := range map[string]struct {
		container Container
		want      bool
	}{
		"the only one":        {Container{Claim: "gpuslice", Template: template}, true},
		"one of several":      {Container{Claim: "gpuslice-main", Template: template}, true},
		"another template":    {Container{Claim: "gpuslice", Template: "mine"}, false},
		"another name":        {Container{Claim: "mine", Template: template}, false},
		"beside a resource":   {Container{Claim: "gpuslice", Template: template, Resource: api.ResourceGPU}, false},
		"beside parts of one": {Container{Claim: "gpuslice", Template: template, Granule: 1024}, false},
	} {
		if got := c.container.soundClaim(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	both := []Container{{Claim: "gpuslice-a"}, {Claim: "gpuslice-b"}}
	if !both[1].ClaimsAlone(both[:1]) || both[0].ClaimsAlone(both[:1]) {
		t.Error("a claim is shared with another's, or its own is not")
	}
}

func TestHasClaim(t *testing.T) {
	t.Parallel()
	p := &Promise{Containers: []Container{{}, {Claim: "gpuslice", Template: "gpuslice-4396mi"}}}
	for name, c := range map[string]struct {
		claim corev1.PodResourceClaim
		want  bool
	}{
		"its own":          {corev1.PodResourceClaim{Name: "gpuslice", ResourceClaimTemplateName: new("gpuslice-4396mi")}, true},
		"another name":     {corev1.PodResourceClaim{Name: "mine", ResourceClaimTemplateName: new("gpuslice-4396mi")}, false},
		"another template": {corev1.PodResourceClaim{Name: "gpuslice", ResourceClaimTemplateName: new("mine")}, false},
		"a claim":          {corev1.PodResourceClaim{Name: "gpuslice", ResourceClaimName: new("gpuslice-4396mi")}, false},
		"nobody's":         {corev1.PodResourceClaim{}, false},
	} {
		spec := &corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{c.claim}}
		if p.HasClaim(&c.claim) != c.want || p.Containers[1].ClaimedBy(spec) != c.want || !p.Containers[0].ClaimedBy(spec) {
			t.Errorf("%s: it has the claim: %v", name, !c.want)
		}
	}
}

func TestWritePlanned(t *testing.T) {
	t.Parallel()
	const guarded = `{"strategy":"mps","pool":"l4","tier":"guard","containers":null}`
	for name, c := range map[string]struct{ planned, observed, want string }{
		"a new pod":                  {"", "", "8Gi of NVIDIA L4, enforced by guard"},
		"the same before it runs":    {guarded, "", "8Gi of NVIDIA L4, enforced by guard"},
		"the same of one that runs":  {guarded, "{}", "as observed"},
		"another of one that runs":   {"{}", "{}", "8Gi of NVIDIA L4, enforced by guard"},
		"another before it runs too": {"{}", "", "8Gi of NVIDIA L4, enforced by guard"},
	} {
		p := &Promise{Slice: "8Gi of NVIDIA L4"}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			api.AnnotationPlanned: c.planned, api.AnnotationObserved: c.observed, api.AnnotationSummary: "as observed"}}}
		p.WritePlanned(pod, Planned{Strategy: "mps", Pool: "l4", Tier: api.TierGuard})
		if pod.Annotations[api.AnnotationSummary] != c.want || pod.Annotations[api.AnnotationPlanned] != guarded {
			t.Errorf("%s: %q", name, pod.Annotations)
		}
	}
}

func TestHasVolume(t *testing.T) {
	t.Parallel()
	p := &Promise{Volumes: []corev1.Volume{{Name: "a"}}}
	if !p.HasVolume("a") || p.HasVolume("b") || (*Promise)(nil).HasVolume("a") {
		t.Error("it has another volume than it gives")
	}
}
