package policies_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/abuse"
)

func TestVerify(t *testing.T) {
	t.Run("what was given passes", func(t *testing.T) {
		t.Parallel()
		for _, c := range created(t) {
			in := c.in
			in.Pod = c.d.Rewrite(c.in.Pod)
			if c.d.Outcome == policies.Denied {
				if d := policies.Verify(in, nil); d.Outcome != policies.Denied {
					t.Errorf("%s: denied once, and then %s", c.s.Name, d.Outcome)
				}
				continue
			}
			if d := policies.Verify(in, c.d.Promise); c.d.Outcome == policies.Mutated && d.Outcome != policies.Unchanged {
				t.Errorf("%s: %s: %s", c.s.Name, d.Outcome, d.Message())
			}
			if d := policies.Verify(in, nil); (c.d.Outcome == policies.Unchanged || c.d.Outcome == policies.DevicesHidden) &&
				d.Outcome != policies.Unchanged {
				t.Errorf("%s: left unchanged, and then %s: %s", c.s.Name, d.Outcome, d.Message())
			}
		}
	})
	t.Run("a slice that was not given is denied", func(t *testing.T) {
		t.Parallel()
		for _, c := range created(t) {
			if c.d.Outcome != policies.Mutated {
				continue
			}
			d := policies.Verify(c.in, nil)
			if d.Outcome == policies.Unchanged && c.in.Policy.EnforcementMode == api.EnforceWarn {
				continue
			}
			if d.IfEnforced != policies.Denied || d.Violations[0].Rule != api.RuleUndone ||
				!strings.Contains(d.Message(), "or another webhook changed the pod after it") {
				t.Errorf("%s: %s: %s", c.s.Name, d.Outcome, d.Message())
			}
		}
	})
	t.Run("a chosen device that was not hidden is denied", func(t *testing.T) {
		t.Parallel()
		chosen := 0
		for _, c := range created(t) {
			if c.d.Outcome != policies.DevicesHidden || !strings.Contains(strings.Join(c.d.Warnings, " "), ": NVIDIA_VISIBLE_DEVICES") {
				continue
			}
			chosen++
			d := policies.Verify(c.in, nil)
			if d.Outcome != policies.Denied || !strings.Contains(d.Message(), "request nvidia.com/gpu: 1 where a GPU is needed") {
				t.Errorf("%s: %s: %s", c.s.Name, d.Outcome, d.Message())
			}
		}
		if chosen == 0 {
			t.Error("no scenario chooses devices")
		}
	})
	t.Run("no pool has to be known", func(t *testing.T) {
		abuse.Report(t, abuse.Attempt{Threat: "A24", Attack: "a node that changes between the two webhooks", Outcome: abuse.Contained,
			Words: "the pod is compared with its signed promise"})
		t.Parallel()
		keys := promise.NewKeys([]byte("a key of the tests, 32 bytes long"))
		verified := 0
		for _, c := range created(t) {
			if c.d.Outcome != policies.Mutated {
				continue
			}
			keys.Sign(c.d.Promise)
			in := c.in
			in.Pod = podedit.Apply(c.d.Promise, c.in.Pod)
			in.Pod.Namespace, in.Pools = c.s.Namespace.Name, nil
			promised := keys.PromiseOf(in.Pod)
			if promised == nil {
				t.Errorf("%s: its promise is not trusted", c.s.Name)
				continue
			}
			verified++
			if d := policies.Verify(in, promised); d.Outcome != policies.Unchanged || d.IfEnforced != policies.Unchanged {
				t.Errorf("%s: denied once all pools are gone: %s", c.s.Name, d.Message())
			}
		}
		if verified < 200 {
			t.Errorf("%d scenarios have a slice", verified)
		}
	})
}

func TestVerifyTampered(t *testing.T) {
	t.Parallel()
	t.Run("what somebody removes is named", func(t *testing.T) {
		t.Parallel()
		undo := map[string]func(*corev1.Pod, *promise.Promise) bool{
			"a variable": func(pod *corev1.Pod, p *promise.Promise) bool {
				c := containerOf(pod, p.Containers[0].Name)
				n := len(c.Env)
				c.Env = c.Env[:max(n-1, 0)]
				return n > 0 && len(p.Containers[0].Env) > 0
			},
			"the resource": func(pod *corev1.Pod, p *promise.Promise) bool {
				c := containerOf(pod, p.Containers[0].Name)
				if p.Containers[0].Resource == "" {
					return false
				}
				// also of parts: less is not counted
				c.Resources.Limits[corev1.ResourceName(p.Containers[0].Resource)] = *resource.NewQuantity(p.Containers[0].Count-1, resource.DecimalSI)
				return true
			},
			"the claim": func(pod *corev1.Pod, p *promise.Promise) bool {
				c := containerOf(pod, p.Containers[0].Name)
				c.Resources.Claims = nil
				return p.Containers[0].Claim != ""
			},
			"the claim's template": func(pod *corev1.Pod, p *promise.Promise) bool {
				for i := range pod.Spec.ResourceClaims {
					pod.Spec.ResourceClaims[i].ResourceClaimTemplateName = new("gpuslice-81559mi")
				}
				return p.Containers[0].Claim != ""
			},
			"a claim of another pod": func(pod *corev1.Pod, p *promise.Promise) bool {
				for i := range pod.Spec.ResourceClaims {
					pod.Spec.ResourceClaims[i].ResourceClaimTemplateName, pod.Spec.ResourceClaims[i].ResourceClaimName = nil, new("shared")
				}
				return p.Containers[0].Claim != ""
			},
			"the label by which templates are written": func(pod *corev1.Pod, p *promise.Promise) bool {
				delete(pod.Labels, api.LabelTier)
				return p.Containers[0].Claim != ""
			},
			"another claim": func(pod *corev1.Pod, p *promise.Promise) bool {
				pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims,
					corev1.PodResourceClaim{Name: "gpuslice-2", ResourceClaimTemplateName: new("all-of-it")})
				return p.Containers[0].Claim != ""
			},
			"who shares the claim": func(pod *corev1.Pod, p *promise.Promise) bool {
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "added-later", Resources: corev1.ResourceRequirements{
					Claims: []corev1.ResourceClaim{{Name: p.Containers[0].Claim}}}})
				return p.Containers[0].Claim != ""
			},
			"another GPU": func(pod *corev1.Pod, p *promise.Promise) bool {
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "added-later", Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}})
				return true
			},
			"all devices by variable": func(pod *corev1.Pod, p *promise.Promise) bool {
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: "added-later",
					Env: []corev1.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "all"}}})
				return true
			},
			"the guard's image": func(pod *corev1.Pod, p *promise.Promise) bool {
				for i := range pod.Spec.InitContainers {
					if strings.HasPrefix(pod.Spec.InitContainers[i].Name, "gpuslice-") {
						pod.Spec.InitContainers[i].Image = "mine"
					}
				}
				return p.Guard != nil
			},
			"the node's agent": func(pod *corev1.Pod, _ *promise.Promise) bool {
				c := containerOf(pod, limits.CheckContainer)
				_, guarded := c.Resources.Limits[limits.GuardedResource]
				delete(c.Resources.Limits, limits.GuardedResource)
				delete(c.Resources.Requests, limits.GuardedResource)
				return guarded
			},
			"what is planned": func(pod *corev1.Pod, _ *promise.Promise) bool {
				pod.Annotations[api.AnnotationPlanned] = "{}"
				return true
			},
		}
		done := map[string]int{}
		for _, c := range created(t) {
			if c.d.Outcome != policies.Mutated || c.in.Policy.EnforcementMode != api.EnforceFull {
				continue
			}
			for what, undo := range undo {
				in := c.in
				in.Pod = podedit.Apply(c.d.Promise, c.in.Pod)
				if !undo(in.Pod, c.d.Promise) {
					continue
				}
				done[what]++
				if d := policies.Verify(in, c.d.Promise); d.IfEnforced != policies.Denied || d.Violations[0].Rule != api.RuleUndone {
					t.Errorf("%s: %s changed: %s %s", c.s.Name, what, d.Outcome, d.Message())
				}
			}
		}
		for what := range undo {
			if done[what] == 0 {
				t.Errorf("no scenario has %s to take away", what)
			}
		}
	})
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

// TestVerifyPromised holds intact promises against policies that changed, and pods with intact promises against the rules.
func TestVerifyPromised(t *testing.T) {
	t.Parallel()
	byName := map[string]decided{}
	for _, c := range created(t) {
		byName[c.s.Name] = c
	}
	first := func(pod *corev1.Pod) *corev1.Container { return containerOf(pod, pod.Spec.Containers[0].Name) }
	for name, tt := range map[string]struct {
		scenario string
		policy   func(*config.Policy)
		pod      func(*corev1.Pod)
		rule     api.Rule
		says     string
	}{
		"nothing changed": {scenario: "guard-is-injected"},
		"a class and a default slice that are gone, since it was given what it was given": {scenario: "guard-is-injected",
			policy: func(p *config.Policy) { p.Classes, p.DefaultSlice = nil, nil }},
		"a container above the limit": {"guard-is-injected", func(p *config.Policy) { p.Limits.PerContainer.Memory = 1 },
			nil, api.RuleLimit, "would hold"},
		"a pod above the limit": {"guard-of-two-containers", func(p *config.Policy) { p.Limits.PerPod.Slices = 1 },
			nil, api.RuleLimit, "the pod would hold 2 slices"},
		"a tier below the minimum": {"guard-is-injected", func(p *config.Policy) { p.MinimumEnforcement.Tier = api.TierDriver },
			nil, api.RuleEnforcement, "reaches guard"},
		"a strategy that is not allowed any more": {"guard-is-injected", func(p *config.Policy) { p.Strategies = []api.StrategyName{"mig"} }, nil,
			api.RulePolicy, "allows mig now"},
		"the processes of the node": {"guard-is-injected", nil, func(p *corev1.Pod) { p.Spec.HostPID = true }, api.RuleTamper, "spec.hostPID"},
		"a privileged container": {"guard-is-injected", nil,
			func(p *corev1.Pod) { first(p).SecurityContext = &corev1.SecurityContext{Privileged: new(true)} },
			api.RuleTamper, "securityContext.privileged"},
		"a hostPath onto the devices": {"guard-access-by-volume", nil, func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes,
				corev1.Volume{Name: "dev", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/dev"}}})
		}, api.RuleTamper, "hostPath"},
		"the guard's devices mounted by the author's container": {"guard-access-by-volume", nil, func(p *corev1.Pod) {
			first(p).VolumeMounts = append(first(p).VolumeMounts, corev1.VolumeMount{Name: "x", MountPath: "/var/run/nvidia-container-devices/all"})
		}, api.RuleTamper, "devices that it did not request"},
		"a CDI annotation": {"guard-access-by-cdi", nil,
			func(p *corev1.Pod) { p.Annotations["cdi.k8s.io/mine"] = "nvidia.com/gpu=all" }, api.RuleTamper, "cdi.k8s.io/mine"},
		"a node by hand": {"guard-is-injected", nil, func(p *corev1.Pod) { p.Spec.NodeName = "n" },
			api.RuleTamper, "spec.nodeName"},
		"the node's IPC where no daemon needs it": {"guard-is-injected", nil, func(p *corev1.Pod) { p.Spec.HostIPC = true },
			api.RuleTamper, "spec.hostIPC"},
		"the node's IPC that the author wrote for GKE's daemon": {scenario: "mps-of-gke-of-a-pod-that-shares-it-already"},
		"processes that the guard may not see": {"guard-is-injected", nil, func(p *corev1.Pod) { p.Spec.ShareProcessNamespace = new(false) },
			api.RuleUndone, "spec.shareProcessNamespace"},
		"a limit of memory that the guard shares": {"guard-is-injected", nil, func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("192Mi")}}
		}, api.RuleUndone, "spec.resources.limits.memory"},
		"processes that the author shared and somebody hides": {"guard-where-processes-are-shared-already", nil,
			func(p *corev1.Pod) { p.Spec.ShareProcessNamespace = nil },
			api.RuleUndone, "spec.shareProcessNamespace"},
		"a user whose processes the guard may not signal": {"guard-under-psa-restricted-with-a-user", nil, func(p *corev1.Pod) {
			for i := range p.Spec.Containers {
				p.Spec.Containers[i].SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(4711))}
			}
		}, api.RuleUndone, "runAsUser"},
		"more containers than a pod with GPUs may have": {"guard-is-injected", nil, func(p *corev1.Pod) {
			for range policies.MaxContainers {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "more"})
			}
		}, api.RuleSize, "too many containers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, ok := byName[tt.scenario]
			if !ok || c.d.Promise == nil {
				t.Fatalf("scenario %s has no slice", tt.scenario)
			}
			in, policy := c.in, *c.in.Policy
			in.Pod, in.Policy = podedit.Apply(c.d.Promise, c.in.Pod), &policy
			if tt.policy != nil {
				tt.policy(in.Policy)
			}
			if tt.pod != nil {
				tt.pod(in.Pod)
			}
			for _, offered := range [][]pools.Pool{c.in.Pools, nil} {
				in.Pools = offered
				d := policies.Verify(in, c.d.Promise)
				if tt.rule == "" {
					if d.Outcome != policies.Unchanged {
						t.Errorf("%d pools: %s: %s", len(offered), d.Outcome, d.Message())
					}
					continue
				}
				if d.Outcome != policies.Denied || d.Violations[0].Rule != tt.rule || !strings.Contains(d.Message(), tt.says) {
					t.Errorf("%d pools: %s: %s", len(offered), d.Outcome, d.Message())
				}
			}
		})
	}
	t.Run("init containers that were to end run on", func(t *testing.T) {
		t.Parallel()
		in, pod := brought(t, "limits: {perPod: {slices: 1}}\n")
		pod.Spec.InitContainers = []corev1.Container{asksGPU("first")}
		given := policies.Decide(in).Promise
		in.Pod = podedit.Apply(given, pod)
		if d := policies.Verify(in, given); d.Outcome != policies.Unchanged {
			t.Fatal(d.Message())
		}
		containerOf(in.Pod, "first").RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		if d := policies.Verify(in, given); d.Outcome != policies.Denied || d.Violations[0].Rule != api.RuleLimit {
			t.Errorf("%s: %s", d.Outcome, d.Message())
		}
	})
	t.Run("a promise of another namespace is none", func(t *testing.T) {
		t.Parallel()
		c := byName["guard-is-injected"]
		in, given := c.in, *c.d.Promise
		in.Pod, given.Namespace = podedit.Apply(c.d.Promise, c.in.Pod), "elsewhere"
		if d := policies.Verify(in, &given); d.Outcome != policies.Denied || d.Violations[0].Rule != api.RuleUndone {
			t.Errorf("%s: %s", d.Outcome, d.Message())
		}
	})
}

// TestVerifyForgedRecords judges pods without a slice on which the mutating webhook, which would remove them, left what is planned
// and observed.
func TestVerifyForgedRecords(t *testing.T) {
	t.Parallel()
	for mode, denied := range map[string]bool{"enforce": true, "audit": false} {
		for _, name := range []string{"", "nvidia.com/gpu.shared"} {
			for _, record := range []string{api.AnnotationPlanned, api.AnnotationObserved} {
				in, pod := brought(t, "")
				in.Policy.Mode, in.Policy.EnforcementMode = "opt-in", api.EnforcementMode(mode)
				pod.Annotations = map[string]string{record: `{"tier":"hardware"}`}
				pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
				if name != "" {
					pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceName(name): resource.MustParse("1")}
				}
				in.Pod = pod
				d := policies.Verify(in, nil)
				if got := d.Outcome == policies.Denied; got != denied || denied && !strings.Contains(d.Message(), record) {
					t.Errorf("%s, %q, %s: %s %s", mode, name, record, d.Outcome, d.Message())
				}
				pod.Annotations = nil
				if d := policies.Verify(in, nil); d.Outcome != policies.Unchanged {
					t.Errorf("%s, %q, without: %s %s", mode, name, d.Outcome, d.Message())
				}
			}
		}
	}
}

// TestPlannedInBoth: while two builds serve side by side, one of them would deny what the other leaves out.
func TestPlannedInBoth(t *testing.T) {
	t.Parallel()
	keys := promise.NewKeys(newKey)
	for _, c := range created(t) {
		if c.d.Outcome != policies.Mutated || c.d.Promise.Charge.Slices == 0 {
			continue
		}
		for name, leaveOut := range map[string]func(*promise.Promise, *corev1.Pod){
			"neither":        func(*promise.Promise, *corev1.Pod) {},
			"the promise":    func(p *promise.Promise, _ *corev1.Pod) { p.Planned = promise.Planned{} },
			"the annotation": func(_ *promise.Promise, pod *corev1.Pod) { delete(pod.Annotations, api.AnnotationPlanned) },
		} {
			given, in := *c.d.Promise, c.in
			in.Pod = podedit.Apply(&given, c.in.Pod)
			in.Pod.Namespace = given.Namespace
			leaveOut(&given, in.Pod)
			keys.Sign(&given)
			in.Pod.Annotations[api.AnnotationPromise] = given.Encode()
			d := policies.Verify(in, keys.PromiseOf(in.Pod))
			if denied := d.Outcome == policies.Denied; denied == (name == "neither") {
				t.Errorf("%s left out: %s %s", name, d.Outcome, d.Message())
			}
		}
		return
	}
	t.Error("no scenario gives a slice")
}
