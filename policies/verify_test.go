package policies_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies"
)

func TestWhatWasGivenIsVerified(t *testing.T) {
	t.Parallel()
	for _, c := range created(t) {
		in := c.in
		in.Pod = c.d.Rewrite(c.in.Pod)
		if c.d.Outcome == policies.Refused {
			if d := policies.Verify(in, nil); d.Outcome != policies.Refused {
				t.Errorf("%s: refused once, and then %s", c.s.Name, d.Outcome)
			}
			continue
		}
		if d := policies.Verify(in, c.d.Promise); c.d.Outcome == policies.Rewritten && d.Outcome != policies.LeftAlone {
			t.Errorf("%s: %s: %s", c.s.Name, d.Outcome, d.Message())
		}
		if d := policies.Verify(in, nil); (c.d.Outcome == policies.LeftAlone || c.d.Outcome == policies.Voided) && d.Outcome != policies.LeftAlone {
			t.Errorf("%s: left alone, and then %s: %s", c.s.Name, d.Outcome, d.Message())
		}
	}
}

func TestASliceThatWasNotGivenIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range created(t) {
		if c.d.Outcome != policies.Rewritten {
			continue
		}
		d := policies.Verify(c.in, nil)
		if d.Outcome == policies.LeftAlone && c.in.Policy.EnforcementMode == policies.EnforceWarn {
			continue
		}
		if d.Would != policies.Refused || d.Violations[0].Rule != policies.RuleUndone {
			t.Errorf("%s: %s: %s", c.s.Name, d.Outcome, d.Message())
		}
	}
}

func TestADeviceThatIsChosenIsRefusedWhereNobodyTookItBack(t *testing.T) {
	t.Parallel()
	chosen := 0
	for _, c := range created(t) {
		if c.d.Outcome != policies.Voided || len(c.d.Warnings) == 0 {
			continue
		}
		chosen++
		d := policies.Verify(c.in, nil)
		if d.Outcome != policies.Refused || !strings.Contains(d.Message(), "ask for nvidia.com/gpu: 1 where a GPU is needed") {
			t.Errorf("%s: %s: %s", c.s.Name, d.Outcome, d.Message())
		}
	}
	if chosen == 0 {
		t.Error("no scenario chooses devices")
	}
}

func TestWhatSomebodyTakesAwayIsNamed(t *testing.T) {
	t.Parallel()
	undo := map[string]func(*corev1.Pod, *policies.Promise) bool{
		"a variable": func(pod *corev1.Pod, p *policies.Promise) bool {
			c := containerOf(pod, p.Containers[0].Name)
			n := len(c.Env)
			c.Env = c.Env[:max(n-1, 0)]
			return n > 0 && len(p.Containers[0].Env) > 0
		},
		"the resource": func(pod *corev1.Pod, p *policies.Promise) bool {
			c := containerOf(pod, p.Containers[0].Name)
			c.Resources.Limits[corev1.ResourceName(p.Containers[0].Resource)] = resource.MustParse("7")
			return true
		},
		"another GPU": func(pod *corev1.Pod, p *policies.Promise) bool {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "added-later", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}})
			return true
		},
		"all devices by variable": func(pod *corev1.Pod, p *policies.Promise) bool {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: "added-later",
				Env: []corev1.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "all"}}})
			return true
		},
		"the guard's image": func(pod *corev1.Pod, p *policies.Promise) bool {
			for i := range pod.Spec.InitContainers {
				if strings.HasPrefix(pod.Spec.InitContainers[i].Name, "gpuslice-") {
					pod.Spec.InitContainers[i].Image = "mine"
				}
			}
			return p.Guard != nil
		},
		"what is planned": func(pod *corev1.Pod, _ *policies.Promise) bool {
			pod.Annotations[policies.AnnotationPlanned] = "{}"
			return true
		},
	}
	done := map[string]int{}
	for _, c := range created(t) {
		if c.d.Outcome != policies.Rewritten || c.in.Policy.EnforcementMode != policies.EnforceFull {
			continue
		}
		for what, undo := range undo {
			in := c.in
			in.Pod = policies.Apply(c.in.Pod, c.d.Promise)
			if !undo(in.Pod, c.d.Promise) {
				continue
			}
			done[what]++
			if d := policies.Verify(in, c.d.Promise); d.Would != policies.Refused || d.Violations[0].Rule != policies.RuleUndone {
				t.Errorf("%s: %s changed: %s %s", c.s.Name, what, d.Outcome, d.Message())
			}
		}
	}
	for what := range undo {
		if done[what] == 0 {
			t.Errorf("no scenario has %s to take away", what)
		}
	}
}

// containerOf is the container of that name, of whatever list.
func containerOf(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return &corev1.Container{}
}

func TestAPolicyThatChangedIsHeldForWhatItLimits(t *testing.T) {
	t.Parallel()
	for _, c := range created(t) {
		if c.d.Outcome != policies.Rewritten || c.in.Policy.EnforcementMode != policies.EnforceFull || c.d.Promise.Containers[0].Slice == 0 {
			continue
		}
		in := c.in
		in.Pod = policies.Apply(c.in.Pod, c.d.Promise)
		stricter := *c.in.Policy
		stricter.Limits.PerPod.Memory = 1
		in.Policy = &stricter
		if d := policies.Verify(in, c.d.Promise); d.Outcome != policies.Refused {
			t.Errorf("%s: over the new limit, and %s", c.s.Name, d.Outcome)
		}
		in.Policy, in.Pools = c.in.Policy, nil
		if d := policies.Verify(in, c.d.Promise); d.Outcome == policies.Refused && d.Violations[0].Rule == policies.RuleUndone {
			t.Errorf("%s: a node that went is taken for tampering: %s", c.s.Name, d.Message())
		}
		return
	}
}

func TestVerifyKnowsNoPools(t *testing.T) {
	t.Parallel()
	keys := policies.NewKeys([]byte("a key of the tests, 32 bytes long"))
	verified := 0
	for _, c := range created(t) {
		if c.d.Outcome != policies.Rewritten {
			continue
		}
		keys.Sign(c.d.Promise)
		in := c.in
		in.Pod = policies.Apply(c.in.Pod, c.d.Promise)
		in.Pod.Namespace, in.Pools = c.s.Namespace.Name, nil
		promise := keys.PromiseOf(in.Pod)
		if promise == nil {
			t.Errorf("%s: its promise is not trusted", c.s.Name)
			continue
		}
		verified++
		if d := policies.Verify(in, promise); d.Outcome != policies.LeftAlone || d.Would != policies.LeftAlone {
			t.Errorf("%s: denied once all pools are gone: %s", c.s.Name, d.Message())
		}
	}
	if verified < 200 {
		t.Errorf("%d scenarios have a slice", verified)
	}
}
