package policies_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/test/abuse"
)

const guardMirror = "mirror.test/hub/guard"

// withGuard is the scenario of a guard in an installation that lists a mirror, and its pod after gpuslice and after a webhook
// that points the guard's containers to image.
func withGuard(t *testing.T, image string) (in policies.Input, first policies.Decision) {
	t.Helper()
	all := created(t)
	i := slices.IndexFunc(all, func(d decided) bool { return d.s.Name == "guard-is-injected" })
	in, first = all[i].in, all[i].d
	settings := *in.Guard
	settings.Mirrors = []string{guardMirror}
	in.Guard = &settings
	in.Pod = podedit.Apply(first.Promise, in.Pod)
	setGuardImage(in.Pod, image)
	return in, first
}

func setGuardImage(pod *corev1.Pod, image string) {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; strings.HasPrefix(c.Name, "gpuslice-") {
			c.Image = image
		}
	}
}

func TestGuardImage(t *testing.T) {
	t.Parallel()
	t.Run("a mirror that the installation lists stays, and is promised", func(t *testing.T) {
		t.Parallel()
		in, _ := withGuard(t, guardMirror+":test")
		again := policies.Decide(in)
		if again.Promise == nil || again.Promise.Guard.Image != guardMirror+":test" {
			t.Fatalf("%s: %s", again.Outcome, again.Message())
		}
		in.Pod = podedit.Apply(again.Promise, in.Pod)
		if d := policies.Verify(in, again.Promise); d.Outcome != policies.Unchanged {
			t.Errorf("%s: %s", d.Outcome, d.Message())
		}
		if once := policies.Decide(in); once.Promise.Encode() != again.Promise.Encode() {
			t.Error("a third pass promises something else")
		}
	})
	t.Run("another image does not stay", func(t *testing.T) {
		t.Parallel()
		abuse.Report(t, abuse.Attempt{Threat: "A12", Attack: "the guard's image from a repository that the installation does not list",
			Outcome: abuse.Denied, Words: "the image of gpuslice's guard was changed"})
		for _, image := range []string{"evil.test/hub/guard:test", guardMirror + ":other", guardMirror + "/evil:test"} {
			in, first := withGuard(t, image)
			if again := policies.Decide(in); again.Promise.Guard.Image != first.Promise.Guard.Image {
				t.Errorf("%s became the promised one", image)
			}
			d := policies.Verify(in, first.Promise)
			for _, part := range []string{"gpuslice-check, gpuslice-guard", image, in.Guard.Image, "guard.image.mirrors"} {
				if d.Outcome != policies.Denied || !strings.Contains(d.Message(), part) {
					t.Errorf("%s: want %q in: %s %s", image, part, d.Outcome, d.Message())
				}
			}
		}
	})
}
