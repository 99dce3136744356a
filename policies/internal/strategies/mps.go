package strategies

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// mps shares a device through a CUDA MPS daemon, which holds each client process to a pinned memory limit and a
// percentage of the multiprocessors. How a client reaches the daemon is its provider's to say.
func mps() Strategy {
	return Strategy{
		Name:         "mps",
		Doc:          "a CUDA MPS daemon holds each process to its memory limit and thread percentage",
		Unit:         UnitShare,
		MaxReplicas:  quantity.MaxFractions,
		MPS:          true,
		DriverLimits: true,
		HoldsCompute: true,
		View:         frameworks.ViewLimitedFree,
		Tier:         api.TierMPS,
		Labels:       map[LabelSource]string{LabelsDiscovery: "mps", LabelsGKE: "mps"},
		Await:        nvidia.SharedGPU,
		Inject:       mpsInjection,
		Requires:     mpsRequires,
		Note:         mpsNote,
	}
}

// mpsNote names the resources that no limit of MPS bounds: all containers on a device are clients of one daemon,
// whatever namespace they are of, and NVIDIA's plugin runs one for each node. Only nodes keep tenants apart, by their
// trust domain.
func mpsNote(p *Placement) string {
	if p.TrustDomain != "" && slices.Contains(p.MPS.TrustDomains, p.TrustDomain) {
		return ""
	}
	return "it shares an MPS daemon with other namespaces, and a fatal fault of one client can end all others; to keep tenants apart, give nodes a trust domain (label " +
		LabelTrustDomain + ") and list it in the policy's mps.trustDomains"
}

func mpsInjection(g Grant) Injection {
	in := driverLimit(g)
	if g.Limit > 0 {
		in.Env = append(in.Env, podspec.Variable{Name: nvidia.EnvMPSPinned, Value: pinnedLimit(g)})
	}
	if g.Compute > 0 {
		in.Env = append(in.Env, podspec.Variable{Name: nvidia.EnvMPSThreads, Value: strconv.FormatInt(int64(g.Compute), 10)})
	}
	if g.Provider.Client == nil {
		return in
	}
	client := g.Provider.Client(g.MPS, g.Container)
	in.Env, in.Mounts, in.Volumes = append(in.Env, client.Env...), client.Mounts, client.Volumes
	return in
}

// pinnedLimit is the limit of one client process: the container's, divided by the processes that share it. Devices are
// named by the ordinals that the container sees; one entry too many would drop every limit of the daemon.
func pinnedLimit(g Grant) string {
	entries := make([]string, g.GPUs)
	for i := range entries {
		entries[i] = fmt.Sprintf("%d=%dM", i, int64(g.Limit)/int64(max(g.Processes, 1)))
	}
	return strings.Join(entries, ",")
}

func mpsRequires(p *Placement) *api.Violation {
	if p.TrustDomain != "" && len(p.MPS.TrustDomains) > 0 && !slices.Contains(p.MPS.TrustDomains, p.TrustDomain) {
		return &api.Violation{Rule: api.RuleStrategy, Reason: "MPS trust domain", Detail: fmt.Sprintf(
			"pool %s belongs to trust domain %q, policy %s shares MPS daemons with %q only; request another strategy, or have the domain added to the policy's mps.trustDomains",
			p.Pool, p.TrustDomain, p.Policy, p.MPS.TrustDomains)}
	}
	if p.Provider.Requires == nil {
		return nil
	}
	return p.Provider.Requires(p)
}
