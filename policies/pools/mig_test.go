package pools

import "testing"

func TestShare(t *testing.T) {
	t.Parallel()
	for want, pools := range map[string][]Pool{
		"1": {{}, {Strategy: "exclusive", Replicas: 1}, {Strategy: "time-slicing"}, {Strategy: "mig", Replicas: 1, MIGProfile: "7g.80gb"},
			{Strategy: "mig", Replicas: 1, MIGProfile: "odd"}},
		"0.25": {{Strategy: "time-slicing", Replicas: 4}, {Strategy: "mps", Replicas: 4}, {Strategy: "mig", Replicas: 1, MIGProfile: "1g.6gb"},
			{Strategy: "mig", Replicas: 1, MIGProfile: "1g.24gb", Product: "NVIDIA-RTX-PRO-6000"},
			// twice the memory of 1g.10gb
			{Strategy: "mig", Replicas: 1, MIGProfile: "1g.20gb", InstanceMemory: 19968, DeviceMemory: 81920},
			{Strategy: "mig", Replicas: 1, MIGProfile: "1g.20gb", InstanceMemory: 19968, Product: "NVIDIA-A100-SXM4-80GB-MIG-1g.20gb"}},
		"0.143": {{Strategy: "mig", Replicas: 1, MIGProfile: "1g.10gb"},
			{Strategy: "mig", Replicas: 1, MIGProfile: "1g.10gb.me", InstanceMemory: 9728, DeviceMemory: 81920},
			{Strategy: "mig", Replicas: 1, MIGProfile: "1g.24gb", Product: "NVIDIA-H100-NVL"}},
		"0.429": {{Strategy: "mig", Replicas: 1, MIGProfile: "3g.40gb"}},
		"0.5":   {{Strategy: "mig", Replicas: 1, MIGProfile: "3g.40gb", InstanceMemory: 40192, DeviceMemory: 81920}},
		"0.286": {{Strategy: "mig", Replicas: 1, MIGProfile: "2g.20gb", InstanceMemory: 19968, DeviceMemory: 81920}},
		"0.072": {{Strategy: "time-slicing", Replicas: 2, MIGProfile: "1g.10gb"}}, // of an instance
	} {
		for _, p := range pools {
			if got := p.Share(0).String(); got != want {
				t.Errorf("%+v: %s, want %s", p, got, want)
			}
		}
	}
}
