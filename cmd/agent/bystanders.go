package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/node"
)

// nothingGiven marks a slim pod that was given no device.
const nothingGiven = "nothing-given"

// bystanders are the pods that were given no device, and use one all the same: by a
// descriptor that a container with a device passed to them, or by what their image sets.
type bystanders struct {
	known    func(uid string) (node.Pod, bool)
	reported map[string]bool // by UID
}

// find returns what to report of a sample, each pod once.
func (b *bystanders) find(s node.Sample, report func(p node.Pod, message string)) {
	for _, d := range s.Devices {
		for _, process := range d.Processes {
			uid := process.Member.PodUID
			p, bystander := b.known(uid)
			if !bystander || b.reported[uid] || process.UsedBytes == 0 {
				continue
			}
			b.forget()
			b.reported[uid] = true
			report(p, fmt.Sprintf("%s (pid %d) uses %s on %s, and its pod was given no GPU: nothing limits it",
				process.Command, process.PID, guard.FormatBytes(process.UsedBytes), d.ID))
		}
	}
}

// forget keeps the pods that are there.
func (b *bystanders) forget() {
	for uid := range b.reported {
		if _, known := b.known(uid); !known {
			delete(b.reported, uid)
		}
	}
}

// hasNothing reports whether a pod was given no device, by any name: neither a resource
// of a device plugin nor a claim, nor the node's own files or privileges.
func hasNothing(pod *corev1.Pod) bool {
	spec := &pod.Spec
	if spec.HostPID || len(spec.ResourceClaims) > 0 {
		return false
	}
	for i := range spec.Volumes {
		if spec.Volumes[i].HostPath != nil {
			return false
		}
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if s := list[i].SecurityContext; s != nil && s.Privileged != nil && *s.Privileged || asksForDevices(list[i].Resources.Limits) {
				return false
			}
		}
	}
	return true
}

func asksForDevices(list corev1.ResourceList) bool {
	for name, quantity := range list {
		if strings.Contains(string(name), "/") && name != limits.GuardedResource && !quantity.IsZero() {
			return true
		}
	}
	return false
}
