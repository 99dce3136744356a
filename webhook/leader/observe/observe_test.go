package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/api"
)

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

const notEnforcing = "gpuslice cannot enforce this pod's slice on GPU-1: the device lists pid 7, which is no process of this pod"

// holding are the tiers of the one container of every fixture.
func holding(tiers ...api.Tier) []api.Tier { return append([]api.Tier{}, tiers...) }

func TestObserve(t *testing.T) {
	t.Parallel()
	const guard, framework, mps, driver, hardware = api.TierGuard, api.TierFramework, api.TierMPS, api.TierDriver, api.TierHardware
	for name, tt := range map[string]struct {
		plan   string
		edit   func(*subject)
		state  State
		tiers  []api.Tier
		reason string // part of the one reason; "" where there is none
	}{
		"a pod that waits for a node is pending": {plan: "time-slicing", state: Pending, tiers: holding(), edit: func(s *subject) {
			s.pod.Spec.NodeName, s.pod.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
		}},
		"a pod whose check still runs is pending": {plan: "time-slicing", state: Pending, tiers: holding(), edit: func(s *subject) {
			s.check().State, s.guard().State, s.trainer().State = running(noon), waiting("PodInitializing"), waiting("PodInitializing")
		}},
		"a guard that has not looked yet is pending before its tenant starts": {plan: "time-slicing", state: Pending, tiers: holding(),
			edit: func(s *subject) {
				s.guard().Started, s.trainer().State = new(false), waiting("PodInitializing")
			}},
		"a guarded pod that runs holds": {plan: "time-slicing", state: Enforced, tiers: holding(guard, framework)},
		"a tenant that crashes beside its guard holds": {plan: "time-slicing", state: Enforced, tiers: holding(guard, framework),
			edit: func(s *subject) { s.trainer().State = waiting("CrashLoopBackOff") }},
		"a client of an MPS daemon holds":            {plan: "mps", state: Enforced, tiers: holding(mps)},
		"a client of the cluster's own daemon holds": {plan: "host daemon", state: Enforced, tiers: holding(mps, guard)},
		"the driver's own limit holds on driver 615": {plan: "driver", state: Enforced, tiers: holding(driver, guard)},
		"a MIG instance holds":                       {plan: "mig", state: Enforced, tiers: holding(hardware)},
		"a pod of the node's agent holds":            {plan: "agent", state: Enforced, tiers: holding(guard)},
		"a pod of the node's agent holds on an older driver": {plan: "agent", state: Enforced, tiers: holding(guard), edit: func(s *subject) {
			s.set("nvidia.com/cuda.driver-version.major", "535")
		}},
		"an agent that is away before its tenant starts is no reason": {plan: "agent", state: Pending, tiers: holding(), edit: func(s *subject) {
			s.agentAway, s.trainer().State = true, waiting("PodInitializing")
		}},
		"an agent that cannot read a device of the pod does not guard it": {plan: "agent", state: Degraded, tiers: holding(),
			edit:   func(s *subject) { s.notEnforced = "gpu1: it is lost" },
			reason: "planned: the agent of l4-1, which terminates what exceeds its slice; it reports: gpu1: it is lost; repair the device"},
		"an agent that is away enforces nothing": {plan: "agent", state: Degraded,
			tiers: holding(), edit: func(s *subject) { s.agentAway = true },
			reason: "planned: the agent of l4-1, which terminates what exceeds its slice; its Lease was not renewed for 30s"},
		"a pod for which nothing was planned holds too": {plan: "unguarded", state: Enforced, tiers: holding()},

		"a check that fails keeps everything from starting": {plan: "time-slicing", state: Degraded, tiers: holding(), edit: func(s *subject) {
			s.check().State = terminated(1, "Error",
				"gpuslice: this node cannot keep what the pod was promised: GPU-1 has 16.0Gi, and the plan needs at least 22.0Gi")
			s.guard().State, s.trainer().State = waiting("PodInitializing"), waiting("PodInitializing")
		}, reason: "the check on l4-1 failed with exit code 1: gpuslice: this node cannot keep what the pod was promised: GPU-1 has 16.0Gi, and the plan needs at least 22.0Gi; no container"},
		"a check that fails again and again is reported while it waits": {plan: "mps", state: Degraded, tiers: holding(), edit: func(s *subject) {
			s.check().State, s.check().LastTerminationState = waiting("CrashLoopBackOff"), terminated(1, "Error", "the MPS daemon does not answer")
			s.guard().State, s.trainer().State = waiting("PodInitializing"), waiting("PodInitializing")
		}, reason: "the MPS daemon does not answer"},
		"a check that passed at the second try is no reason": {plan: "time-slicing", state: Enforced, tiers: holding(guard, framework),
			edit: func(s *subject) {
				s.check().LastTerminationState = terminated(1, "Error", "NVML does not answer")
			}},

		"a guard that was OOM-killed is missed while its tenant runs": {plan: "time-slicing", state: Degraded, tiers: holding(framework),
			edit: func(s *subject) {
				s.guard().State, s.guard().LastTerminationState, s.guard().RestartCount = waiting("CrashLoopBackOff"),
					terminated(137, "OOMKilled", ""), 2
			}, reason: "the guard waits (CrashLoopBackOff) after it ended with exit code 137, OOMKilled: over a limit of host memory"},
		"a guard that was killed and has not looked since is missed": {plan: "time-slicing", state: Degraded, tiers: holding(framework),
			edit: func(s *subject) {
				s.guard().Started, s.guard().LastTerminationState, s.guard().RestartCount = new(false), terminated(137, "Error", ""), 1
			}, reason: "the guard has not sampled the devices yet after it ended with exit code 137"},
		"a guard that guards again holds": {plan: "time-slicing", state: Enforced, tiers: holding(guard, framework), edit: func(s *subject) {
			s.guard().LastTerminationState, s.guard().RestartCount = terminated(137, "OOMKilled", ""), 1
		}},
		"a guard that ended after its tenant is not missed": {plan: "time-slicing", state: Pending, tiers: holding(), edit: func(s *subject) {
			s.trainer().State, s.guard().State = terminated(0, "Completed", ""), terminated(0, "Completed", "")
		}},
		"a guard that the kubelet does not know is missed": {plan: "time-slicing", state: Degraded, tiers: holding(framework),
			edit: func(s *subject) {
				s.pod.Status.InitContainerStatuses = s.pod.Status.InitContainerStatuses[:1]
			}, reason: "the guard was never started"},
		"a pod without the guard's container lacks it": {plan: "time-slicing", state: Degraded, tiers: holding(framework),
			edit: func(s *subject) {
				s.pod.Spec.InitContainers = s.pod.Spec.InitContainers[:1]
			}, reason: "the pod has no such container"},
		"another image under the guard's name is no guard": {plan: "time-slicing", state: Degraded, tiers: holding(framework),
			edit: func(s *subject) {
				s.pod.Spec.InitContainers[1].Image = "example.test/pause"
			}, reason: "its image was changed to example.test/pause"},
		"an observing guard that is away weakens nothing that was planned": {plan: "mps", state: Enforced, tiers: holding(mps),
			edit: func(s *subject) {
				s.guard().State = waiting("CrashLoopBackOff")
			}},

		"a driver too old for the guard takes it away": {plan: "time-slicing", state: Degraded, tiers: holding(framework),
			edit:   func(s *subject) { s.set("nvidia.com/cuda.driver-version.major", "550") },
			reason: "the guard, which needs driver 565.57.01; node l4-1 has 550.95"},
		"565 before its release line takes it away": {plan: "time-slicing", state: Degraded, tiers: holding(framework),
			edit: func(s *subject) {
				s.set("nvidia.com/cuda.driver-version.major", "565", "nvidia.com/cuda.driver-version.minor", "56")
			},
			reason: "node l4-1 has 565.56"},
		"565.57 is enough for the guard": {plan: "time-slicing", state: Enforced, tiers: holding(guard, framework),
			edit: func(s *subject) {
				s.set("nvidia.com/cuda.driver-version.major", "565", "nvidia.com/cuda.driver-version.minor", "57")
			}},
		"a driver before 615 takes its own limit away": {plan: "driver", state: Degraded, tiers: holding(guard),
			edit:   func(s *subject) { s.set("nvidia.com/cuda.driver-version.major", "580") },
			reason: "which needs driver 615; node h200-1 has 580.71"},
		"a driver that nobody names takes its own limit away": {plan: "driver", state: Degraded, tiers: holding(guard),
			edit: func(s *subject) {
				s.node = s.node.DeepCopy()
				for _, key := range []string{"nvidia.com/cuda.driver-version.major", "nvidia.com/cuda.driver.major"} {
					delete(s.node.Labels, key)
				}
			}, reason: "node h200-1 has no label with its driver"},
		"a node that is not known shows no driver": {plan: "driver", state: Degraded, tiers: holding(guard),
			edit: func(s *subject) { s.node = nil }, reason: "node h200-1 is unknown"},
		"a node that is not known takes nothing else": {plan: "time-slicing", state: Enforced, tiers: holding(guard, framework),
			edit: func(s *subject) {
				s.node = nil
			}},

		"another size of device takes the framework's share away": {plan: "time-slicing", state: Degraded, tiers: holding(guard),
			edit:   func(s *subject) { s.set("nvidia.com/gpu.memory", "15360") },
			reason: "nvidia.com/gpu.memory 23034 (node has 15360); l4-1 now differs"},
		"more replicas on the device are reported, and limits in bytes hold": {plan: "time-slicing",
			state: Degraded, tiers: holding(guard, framework),
			edit: func(s *subject) { s.set("nvidia.com/gpu.replicas", "10") }, reason: "nvidia.com/gpu.replicas 4 (node has 10)"},
		"labels that are gone for a moment say nothing": {plan: "time-slicing", state: Enforced, tiers: holding(guard, framework),
			edit: func(s *subject) {
				s.node = &corev1.Node{ObjectMeta: s.node.ObjectMeta}
				s.node.Labels = map[string]string{}
			}},
		"MPS that became time-slicing holds nothing": {plan: "mps", state: Degraded, tiers: holding(),
			edit: func(s *subject) { s.set("nvidia.com/gpu.sharing-strategy", "time-slicing") }, reason: "time-slicing"},
		"MPS that became time-slicing holds nothing for a pod that no affinity binds": {plan: "mps", state: Degraded, tiers: holding(),
			edit: func(s *subject) {
				s.promise.Affinity = nil
				s.set("nvidia.com/gpu.sharing-strategy", "time-slicing")
			}, reason: "planned: mps of nvidia.com/gpu; node h100-1 now offers it by time-slicing"},
		"a daemon of the cluster's own may be behind devices that labels call unshared": {plan: "host daemon",
			state: Enforced, tiers: holding(mps, guard),
			edit: func(s *subject) { s.promise.Affinity = nil }},
		"a device that lost its instances holds nothing": {plan: "mig", state: Degraded, tiers: holding(),
			edit: func(s *subject) {
				s.set("nvidia.com/mig-1g.10gb.sharing-strategy", "time-slicing", "nvidia.com/mig-1g.10gb.replicas", "2")
			}, reason: "time-slicing"},

		"a share by claim is held as planned": {plan: "claim", state: Enforced, tiers: holding(guard)},
		"an instance that was free holds": {plan: "claim", state: Enforced, tiers: holding(hardware, guard),
			edit: func(s *subject) { s.instances = []string{"trainer"} }},
		"an instance holds while the guard is away": {plan: "claim", state: Enforced, tiers: holding(hardware), edit: func(s *subject) {
			s.instances, s.guard().State = []string{"trainer"}, waiting("CrashLoopBackOff")
		}},
		"an instance of another container holds nothing": {plan: "claim", state: Degraded, tiers: holding(), edit: func(s *subject) {
			s.instances, s.guard().State = []string{"other"}, waiting("CrashLoopBackOff")
		}, reason: "the guard waits"},
		"an instance holds nothing while the check fails": {plan: "claim", state: Degraded, tiers: holding(), edit: func(s *subject) {
			s.instances, s.check().State = []string{"trainer"}, terminated(1, "Error", "no devices")
			s.guard().State, s.trainer().State = waiting("PodInitializing"), waiting("PodInitializing")
		}, reason: "no devices"},

		"a guard that cannot enforce does not hold": {plan: "time-slicing", state: Degraded, tiers: holding(framework),
			edit:   func(s *subject) { s.hear(time.Minute, notEnforcing) },
			reason: "at 2026-03-04T12:01:00Z it reported: " + notEnforcing},
		"a notice that the guard enforces again lifts nothing, since others can write it": {plan: "time-slicing",
			state: Degraded, tiers: holding(framework),
			edit: func(s *subject) {
				s.hear(time.Minute, notEnforcing)
				s.hear(2*time.Minute, "gpuslice enforces this pod's slice again on GPU-1")
			}, reason: "reports that it enforces again"},
		"notices of an earlier run of the guard do not count": {plan: "time-slicing", state: Enforced, tiers: holding(guard, framework),
			edit: func(s *subject) { s.hear(-time.Minute, notEnforcing) }},
		"a guard that could not end a process does not hold": {plan: "time-slicing", state: Degraded, tiers: holding(framework),
			edit: func(s *subject) {
				s.hear(time.Minute, "gpuslice could not terminate python (pid 9, 6.0Gi) in trainer: 6.0Gi of 4.0Gi; it did not exit")
			}, reason: "6.0Gi of 4.0Gi; it did not exit; terminate the process yourself"},
		"a guard that ended a process did what was planned": {plan: "time-slicing", state: Enforced, tiers: holding(guard, framework),
			edit: func(s *subject) {
				s.hear(time.Minute, "gpuslice terminated python (pid 9, 6.0Gi) in trainer: 6.0Gi of 4.0Gi on GPU-1 for 2s")
				s.trainer().LastTerminationState, s.trainer().RestartCount = terminated(137, "Error", ""), 1
			}},
		"a container without a slice on the device is reported": {plan: "time-slicing", state: Degraded, tiers: holding(framework),
			edit: func(s *subject) {
				s.hear(time.Minute, "python (pid 9, 6.0Gi) in sidecar uses 6.0Gi on GPU-1 without a slice: it is held to what the pod's slices leave")
			}, reason: "give the container a slice"},

		"a pod that has run has ended": {plan: "time-slicing", state: Ended, tiers: holding(), edit: func(s *subject) {
			s.pod.Status.Phase = corev1.PodSucceeded
			s.trainer().State, s.guard().State = terminated(0, "Completed", ""), terminated(0, "Completed", "")
		}},
		"a Job whose check failed ends with the reason": {plan: "time-slicing", state: Ended, tiers: holding(), edit: func(s *subject) {
			s.pod.Status.Phase = corev1.PodFailed
			s.check().State = terminated(1, "Error", "gpuslice: this node cannot keep what the pod was promised: no devices")
			s.guard().State, s.trainer().State = waiting("PodInitializing"), waiting("PodInitializing")
		}, reason: "no devices"},
		"a pod that its node rejected ends with the reason": {plan: "time-slicing", state: Ended, tiers: holding(), edit: func(s *subject) {
			s.pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError",
				Message: "Allocate failed due to no healthy devices"}
		}, reason: "because of UnexpectedAdmissionError: Allocate failed due to no healthy devices"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := started(t, tt.plan)
			if tt.edit != nil {
				tt.edit(s)
			}
			o := s.observe()
			if diff := cmp.Diff(tt.tiers, o.Containers[0].Tiers); diff != "" || o.State != tt.state {
				t.Errorf("%s, want %s; tiers (-want +got)\n%s\nreasons %q", o.State, tt.state, diff, o.Reasons)
			}
			if got := strings.Join(o.Reasons, "\n"); !strings.Contains(got, tt.reason) || (tt.reason == "") != (got == "") || len(o.Reasons) > 1 {
				t.Errorf("reasons %q, want one with %q", o.Reasons, tt.reason)
			}
			back, err := DecodeObservation(o.Encode())
			if diff := cmp.Diff(o, back); err != nil || diff != "" {
				t.Errorf("the annotation does not read back: %v\n%s", err, diff)
			}
		})
	}
}

// TestObserveNotices is rule A26: whatever notices come, and in whatever order, they raise no tier.
func TestObserveNotices(t *testing.T) {
	t.Parallel()
	kinds := []NoticeKind{NoticeNotEnforcing, NoticeEnforcing, NoticeNotTerminated, NoticeNotTerminable, NoticeUnmanaged, NoticeTerminated}
	for plan := range plans {
		for _, edit := range []func(*subject){
			func(*subject) {},
			func(s *subject) { s.set("nvidia.com/cuda.driver-version.major", "550") },
			func(s *subject) { s.trainer().State = waiting("PodInitializing") },
			func(s *subject) { s.hear(time.Minute, notEnforcing) },
		} {
			s := started(t, plan)
			edit(s)
			without := s.observe()
			for set := range 1 << len(kinds) {
				notices := s.notices
				for i, kind := range kinds {
					if set&(1<<i) != 0 {
						notices = append(notices, Notice{Kind: kind, At: noon.Add(time.Hour), Text: "gpuslice enforces this pod's slice again"})
					}
				}
				o := Observe(s.pod, s.place(), s.promise, notices)
				for i := range o.Containers {
					for _, tier := range o.Containers[i].Tiers {
						if !strings.Contains(strings.Join(words(without.Containers[i].Tiers), " "), string(tier)) {
							t.Fatalf("%s: notices %06b raise %s", plan, set, tier)
						}
					}
				}
				if without.State == Degraded && o.State == Enforced {
					t.Fatalf("%s: notices %06b lift the state", plan, set)
				}
			}
		}
	}
}

func words(tiers []api.Tier) []string {
	var out []string
	for _, tier := range tiers {
		out = append(out, string(tier))
	}
	return out
}

func TestObserveTerminations(t *testing.T) {
	t.Parallel()
	s := started(t, "time-slicing")
	s.trainer().LastTerminationState = terminated(137, "OOMKilled", "line one\nline two")
	s.guard().LastTerminationState, s.guard().RestartCount = terminated(2, "Error", "gpuslice: read the guard's limits"), 3
	o := s.observe()
	if want := "exit code 137, OOMKilled: over a limit of host memory: line one line two"; o.Containers[0].Ended != want {
		t.Errorf("the container ended with %q, want %q", o.Containers[0].Ended, want)
	}
	if diff := cmp.Diff(&Guard{Restarts: 3, Ended: "exit code 2: gpuslice: read the guard's limits"}, o.Guard); diff != "" {
		t.Errorf("guard (-want +got)\n%s", diff)
	}
}

func TestObservationIsBounded(t *testing.T) {
	t.Parallel()
	s := started(t, "time-slicing")
	long := strings.Repeat("x;\x00é", 20_000)
	s.trainer().LastTerminationState = terminated(1, long, long)
	s.guard().LastTerminationState = terminated(1, long, long)
	s.guard().State = waiting(long)
	for _, kind := range []string{notEnforcing + long, "gpuslice could not terminate " + long, "a and is not terminated: " + long} {
		s.hear(time.Minute, kind)
	}
	text := s.observe().Encode()
	if len(text) > maxObservation {
		t.Errorf("%d bytes", len(text))
	}
	if _, err := DecodeObservation(text); err != nil {
		t.Error(err)
	}
	if _, err := DecodeObservation(strings.Repeat("x", maxObservation+1)); err == nil {
		t.Error("an annotation of any length is read")
	}
}
