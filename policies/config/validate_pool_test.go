package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidateDeclaredPools(t *testing.T) {
	t.Parallel()
	const where = "name: a, selector: {pool: a}, resource: nvidia.com/gpu.shared, "
	for _, c := range []struct {
		name, pool string // the second is the flow mapping of one declared pool; "|" begins another
		want       []string
	}{
		{"time-slicing", where + "strategy: time-slicing, replicas: 4", nil},
		{"time-sliced MIG instances",
			where + "strategy: time-slicing, replicas: 2, migProfile: 1g.10gb, instanceMemory: 9728Mi, deviceMemory: 80Gi", nil},
		{"whole devices", where + "strategy: exclusive", nil},
		{"MPS on a host daemon", where + "strategy: mps, replicas: 48, mpsProvider: host-daemon, driver: 615.71.09, driverLimits: true", nil},
		{"MIG", where + "strategy: mig, migProfile: 1g.10gb, instanceMemory: 9728Mi", nil},
		{"the same nodes for two resources",
			where + "strategy: exclusive|name: b, selector: {pool: a}, resource: nvidia.com/gpu, strategy: exclusive", nil},
		{"nothing", "", []string{
			`pools.declared[0].name: Required value: a name for people, such as "l4-shared"`,
			`pools.declared[0].selector: Required value: labels that the pool's nodes carry; an empty selector would claim every node`,
			`pools.declared[0].resource: Required value: the name under which the nodes offer it, such as nvidia.com/gpu.shared`,
			`pools.declared[0].strategy: Required value: how its devices are shared, one of time-slicing, mps, mig, exclusive`}},
		{"nobody says how many share a device", where + "strategy: time-slicing",
			[]string{`pools.declared[0].replicas: Required value: how many share one device, as the device plugin is configured`}},
		{"shared by one", where + "strategy: time-slicing, replicas: 1",
			[]string{`pools.declared[0].replicas: Invalid value: 1: accepted: 2 to 4096`}},
		{"more clients than MPS serves", where + "strategy: mps, replicas: 49, mpsProvider: host-daemon",
			[]string{`pools.declared[0].replicas: Invalid value: 49: accepted: 2 to 48`}},
		{"MPS by nobody", where + "strategy: mps, replicas: 4",
			[]string{`pools.declared[0].mpsProvider: Required value: who runs the MPS daemon: nvidia-device-plugin, host-daemon, gke`}},
		{"a daemon without MPS", where + "strategy: exclusive, mpsProvider: host-daemon",
			[]string{`pools.declared[0].mpsProvider: Forbidden: only pools of strategy mps have one`}},
		{"replicas of whole devices", where + "strategy: exclusive, replicas: 4",
			[]string{`pools.declared[0].replicas: Invalid value: 4: a pool of strategy exclusive is not shared; leave it out`}},
		{"MIG without a profile", where + "strategy: mig",
			[]string{`pools.declared[0].migProfile: Required value: the instances' profile, such as "1g.10gb"`}},
		{"a MIG compute instance", where + "strategy: mig, migProfile: 1c.3g.40gb, instanceMemory: 40192Mi",
			[]string{`pools.declared[0].migProfile: Invalid value: "1c.3g.40gb": a compute instance shares the memory of its GPU instance with others, so that nothing holds a slice of it`}},
		{"MPS on MIG", where + "strategy: mps, replicas: 4, mpsProvider: host-daemon, migProfile: 1g.10gb",
			[]string{`pools.declared[0].migProfile: Forbidden: MIG instances are held alone (strategy mig) or time-sliced`}},
		{"an instance without a profile", where + "strategy: exclusive, instanceMemory: 8Gi",
			[]string{`pools.declared[0].instanceMemory: Forbidden: only pools with a migProfile have one; a device's own memory is deviceMemory`}},
		{"an instance larger than its device", where + "strategy: mig, migProfile: 1g.10gb, instanceMemory: 8Gi, deviceMemory: 4Gi",
			[]string{`pools.declared[0].instanceMemory: Invalid value: "8Gi": more than deviceMemory (4Gi)`}},
		{"a limit of an old driver", where + "strategy: exclusive, driver: 580.95.05, driverLimits: true",
			[]string{`pools.declared[0].driverLimits: Forbidden: drivers before 615 limit no memory, and driver says 580.95.05`}},
		{"a driver in words", where + "strategy: exclusive, driver: latest",
			[]string{`pools.declared[0].driver: Invalid value: "latest": accepted: a release such as "580.95.05"`}},
		{"a resource without a domain", "name: a, selector: {pool: a}, resource: gpu, strategy: exclusive", []string{
			`pools.declared[0].resource: Invalid value: "gpu": accepted: an extended resource with its domain, such as nvidia.com/gpu.shared`,
		}},
		{"two of one name", where + "strategy: exclusive|name: a, selector: {pool: b}, resource: nvidia.com/gpu, strategy: exclusive",
			[]string{`pools.declared[1].name: Duplicate value: "a"`}},
		{"two that claim the same",
			where + "strategy: exclusive|name: b, selector: {pool: a}, resource: nvidia.com/gpu.shared, strategy: exclusive",
			[]string{`pools.declared[1].selector: Forbidden: pool "a" selects the same nodes for the same resource`}},
		{"parts of one device", where + "strategy: time-slicing, replicas: 21, deviceMemory: 23034Mi, granular: true", nil},
		{"parts of MPS clients", where + "strategy: mps, replicas: 4, mpsProvider: host-daemon, deviceMemory: 23034Mi, granular: true",
			[]string{`pools.declared[0].granular: Forbidden: only pools of strategy time-slicing without migProfile divide a device into parts`}},
		{"parts of GKE's MPS clients", "name: a, selector: {pool: a}, resource: nvidia.com/gpu, strategy: mps, replicas: 21, mpsProvider: gke, deviceMemory: 23034Mi, granular: true", []string{
			`pools.declared[0].granular: Forbidden: GKE's device plugin offers parts and whole GPUs as nvidia.com/gpu, so neither the scheduler nor a ResourceQuota could tell them apart; ` +
				`make a node pool for each size by max-shared-clients-per-gpu, or run NVIDIA's device plugin there (label gke-no-default-nvidia-gpu-device-plugin: "true") with renameByDefault: true`}},
		{"parts of MIG instances", where + "strategy: time-slicing, replicas: 2, migProfile: 1g.10gb, deviceMemory: 80Gi, granular: true",
			[]string{`pools.declared[0].granular: Forbidden: only pools of strategy time-slicing without migProfile divide a device into parts`}},
		{"parts under the name of whole GPUs",
			"name: a, selector: {pool: a}, resource: nvidia.com/gpu, strategy: time-slicing, replicas: 21, deviceMemory: 23034Mi, granular: true",
			[]string{`pools.declared[0].granular: Forbidden: pods must tell parts from whole GPUs: offer them as nvidia.com/gpu.shared (renameByDefault: true)`}},
		{"parts of an unknown device", where + "strategy: time-slicing, replicas: 21, granular: true",
			[]string{`pools.declared[0].deviceMemory: Required value: what a part is computed from, as nvidia-smi shows it, such as 23034Mi`}},
		{"parts too small", where + "strategy: time-slicing, replicas: 4096, deviceMemory: 80Gi, granular: true",
			[]string{`pools.declared[0].replicas: Invalid value: "4096": parts of less than 128Mi; 1 GiB each is usual`}},
		{"a taint of no effect", where + "strategy: exclusive, taints: [{key: a}]",
			[]string{`pools.declared[0].taints[0].effect: Unsupported value: "": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			document := head + "pools: {declared: [{" + strings.ReplaceAll(c.pool, "|", "}, {") + "}]}\n"
			_, problems := Parse("sys/x", []byte(document))
			var got []string
			for _, p := range problems {
				got = append(got, p.Error())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
