package explain

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
	"github.com/gpuslice/gpuslice/webhook/leader/claimtemplates"
)

// TestTemplateNote: what a pod waits for whose slice is a claim.
func TestTemplateNote(t *testing.T) {
	const name = "gpuslice-4396mi"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "p"},
		Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpuslice", ResourceClaimTemplateName: new(name)}}}}
	spec := &claims.Named(pod)[0].Spec.Spec
	class := map[string]*resourcev1.DeviceClass{"gpu.nvidia.com": {}}
	for _, c := range []struct {
		what    string
		read    bool
		others  int
		written bool
		classes map[string]*resourcev1.DeviceClass
		want    string
	}{
		{"not read", false, 0, false, nil, "once a device has room"},
		{"not written", true, 3, false, class, "not written yet"},
		{"too many", true, claimtemplates.MaxTemplates, false, class, "256 of gpuslice's templates, the maximum"},
		{"written beside many", true, claimtemplates.MaxTemplates, true, class, "once a device has room"},
		{"without a class", true, 0, true, nil, "DeviceClass gpu.nvidia.com, which does not exist"},
	} {
		f := &facts{pod: pod, claimsRead: c.read, claims: cluster.Claims{Classes: c.classes,
			Templates: map[string]*resourcev1.ResourceClaimSpec{"team-b/" + name: spec, "team-a/mine": {}}}}
		for i := range c.others {
			f.claims.Templates[fmt.Sprintf("team-a/gpuslice-%dmi", i+1)] = spec
		}
		if c.written {
			f.claims.Templates["team-a/"+name] = spec
		}
		l := &status{}
		if l.template(f, name); len(l.Notes) != 1 || !strings.Contains(l.Notes[0], c.want) {
			t.Errorf("%s: %q, want %q", c.what, l.Notes, c.want)
		}
	}
}
