package policies

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/internal/rules"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// maxUnwatched bounds the warnings about ways to GPUs beside requests.
const maxUnwatched = 8

// unwatched are warnings about a pod without a slice that reaches GPUs, or would, past what it requests: a privileged container has all
// devices of its node, and a device file that is mounted into another one opens nothing, because its cgroup allows no device that was
// not requested.
func unwatched(in *Input) (warnings []string) {
	if !mayReachGPU(in) {
		return nil
	}
	var mounted []string
	for _, v := range in.Pod.Spec.Volumes {
		if v.HostPath != nil && strings.HasPrefix(v.HostPath.Path, "/dev/nvidia") {
			mounted = append(mounted, v.Name)
		}
	}
	for c := range podspec.EveryContainer(&in.Pod.Spec) {
		i := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return slices.Contains(mounted, m.Name) })
		switch {
		case rules.IsPrivileged(c.SecurityContext):
			warnings = append(warnings, fmt.Sprintf("container %s is privileged: it has every GPU of its node, whatever it requests or "+
				"NVIDIA_VISIBLE_DEVICES says, and no slice limits it; remove securityContext.privileged unless it has to administer the node",
				message.Quote(c.Name)))
		case i >= 0 && !request.RequestsGPU(c, in.Pools):
			warnings = append(warnings, fmt.Sprintf("container %s mounts a device file by volume %s, which opens no GPU to a container that is not privileged; "+
				"request %s: 1, with the label %s: %s for a share, and remove the volume", message.Quote(c.Name), message.Quote(c.VolumeMounts[i].Name),
				api.ResourceGPU, api.LabelMemory, pools.AdvisedMemory(in.Pools, in.Policy.Strategies)))
		}
	}
	return warnings[:min(len(warnings), maxUnwatched)]
}

// mayReachGPU reports whether a known node with GPUs is open to the pod.
func mayReachGPU(in *Input) bool {
	requests := request.RequestsGPUs(&in.Pod.Spec, in.Pools)
	for i := range in.Pools {
		p := in.Pools[i]
		if !requests { // the taint of its name is tolerated for pods that request it
			p.Resource = ""
		}
		if ok, _ := p.Reach(in.Pod, nil); ok && len(p.Nodes) > 0 {
			return true
		}
	}
	return false
}
