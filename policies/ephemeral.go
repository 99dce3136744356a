package policies

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/internal/rules"
	"github.com/gpuslice/gpuslice/policies/podedit"
)

// hideFromEphemeral answers an update that adds ephemeral containers: in.Pod with no device in those that old has not, and
// without variables of ours, where the pod has slices, or requests GPUs in a governed namespace. Ephemeral containers
// that are there already are immutable, and stay. It returns the pod itself where nothing is to be changed.
func hideFromEphemeral(in Input, old *corev1.Pod) *corev1.Pod {
	out, changed := in.Pod.DeepCopy(), false
	for c := range addedTo(old, out) {
		if !governsEphemeral(in, old, c) || hidesDevices(c) {
			continue
		}
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return nvidia.IsOwnVariable(e.Name) || e.Name == nvidia.EnvIMEXChannels })
		c.Env = podspec.SetVariable(c.Env, podspec.Variable{Name: nvidia.EnvVisibleDevices, Value: nvidia.NoDevices})
		changed = true
	}
	if !changed {
		return in.Pod
	}
	return out
}

// checkEphemeral returns the violations of ephemeral containers that in.Pod has and old has not.
func checkEphemeral(in Input, old *corev1.Pod) []api.Violation {
	var found []string
	first := ""
	for c := range addedTo(old, in.Pod) {
		if !governsEphemeral(in, old, c) {
			continue
		}
		for _, text := range problemsOfEphemeral(c, old) {
			found, first = append(found, fmt.Sprintf("ephemeral container %q %s", c.Name, text)), cmp.Or(first, c.Name)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return []api.Violation{{Rule: api.RuleTamper, Reason: "an ephemeral container that reaches out of a slice", Container: first,
		Detail: message.ShortList(found) + "; add it without that (kubectl debug --profile=baseline adds no capability)"}}
}

func problemsOfEphemeral(c *corev1.Container, old *corev1.Pod) (found []string) {
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if !hidesDevices(c) {
		say("could take devices or another limit; its env has to say %s: %q, and nothing that begins with %s",
			nvidia.EnvVisibleDevices, nvidia.NoDevices, nvidia.OwnPrefixes)
	}
	if m := rules.NamesDevice(c.VolumeMounts); m != "" {
		say("mounts a volume at %s, which takes devices", message.Quote(m))
	}
	if !hasPromise(old) {
		return found
	}
	if podspec.IsOurs(c.Name) {
		say("has a name that belongs to gpuslice")
	}
	if rules.IsPrivileged(c.SecurityContext) {
		say("is privileged")
	}
	if c.SecurityContext != nil && rules.Unconfined(c.SecurityContext.SELinuxOptions) {
		say("sets securityContext.seLinuxOptions.type %q, by which SELinux confines nothing", c.SecurityContext.SELinuxOptions.Type)
	}
	if names := rules.BeyondSlice(c.SecurityContext); len(names) > 0 {
		say("adds the capabilities %s", strings.Join(names, ", "))
	}
	for _, m := range c.VolumeMounts {
		if podspec.IsOurs(m.Name) {
			say("mounts the volume %q, which belongs to gpuslice", m.Name)
		}
		if !m.ReadOnly && slices.ContainsFunc(old.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name && rules.MayBeRead(v) }) {
			say("mounts the volume %q of the node, of which each mount has to be readOnly", m.Name)
		}
	}
	return found
}

// hidesDevices reports whether the container gets no device, and sets no variable of ours.
func hidesDevices(c *corev1.Container) bool {
	ours := func(e corev1.EnvVar) bool { return nvidia.IsOwnVariable(e.Name) || e.Name == nvidia.EnvIMEXChannels }
	return podspec.VariableIndex(c.Env, nvidia.EnvVisibleDevices) >= 0 && !podedit.ChoosesDevices(c) && !slices.ContainsFunc(c.Env, ours)
}

// governsEphemeral reports whether this file's rules apply to an ephemeral container: in every pod with slices; where a
// policy is in force also in pods with GPUs, and for containers that choose devices, or might by variables that are not
// visible here.
func governsEphemeral(in Input, pod *corev1.Pod, c *corev1.Container) bool {
	return hasPromise(pod) || changesPods(in) && (request.RequestsGPUs(&pod.Spec, in.Pools) ||
		podedit.ChoosesDevices(c) || len(c.EnvFrom) > 0 || rules.NamesDevice(c.VolumeMounts) != "")
}

func hasPromise(pod *corev1.Pod) bool { return pod.Annotations[api.AnnotationPromise] != "" }

// addedTo yields the ephemeral containers of updated that old has not.
func addedTo(old, updated *corev1.Pod) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for i := range updated.Spec.EphemeralContainers {
			c := &updated.Spec.EphemeralContainers[i]
			there := slices.ContainsFunc(old.Spec.EphemeralContainers, func(o corev1.EphemeralContainer) bool { return o.Name == c.Name })
			if !there && !yield((*corev1.Container)(&c.EphemeralContainerCommon)) {
				return
			}
		}
	}
}
