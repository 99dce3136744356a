package doctor

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// checkLimitRanges looks for LimitRanges that leave no room for the guard, for those that give a GPU to pods that request none, and
// for those that rule out slices of a resource that they do not limit.
func checkLimitRanges(f *Facts) []Finding {
	governed := map[string]bool{}
	for _, g := range f.Governed() {
		governed[g.Name] = true
	}
	guard := guardResources(f)
	var all []Finding
	for _, r := range f.Limits {
		if !governed[r.Namespace] {
			continue
		}
		where := object("limitrange", r.Namespace, r.Name)
		denies := newFinding(Problem, "a LimitRange leaves no room for the guard's containers: pods of this namespace get no guard")
		gives := newFinding(Problem, "a LimitRange gives a GPU to each container that requests none")
		rules := newFinding(Problem, "a LimitRange limits a GPU of a pod: Kubernetes denies each pod with a slice of another resource")
		for _, item := range r.Spec.Limits {
			ofPod := item.Type == corev1.LimitTypePod
			if item.Type != corev1.LimitTypeContainer && !ofPod {
				continue
			}
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if most, ok := item.Max[name]; ok && most.Cmp(guard[name]) < 0 {
					denies = denies.With(where, "max["+string(name)+"]", most.String())
				}
			}
			if ofPod {
				rules = withGPUs(withGPUs(rules, where, "max", item.Max), where, "min", item.Min)
				continue
			}
			gives = withGPUs(withGPUs(gives, where, "default", item.Default), where, "max", item.Max)
		}
		cpu, memory := guard[corev1.ResourceCPU], guard[corev1.ResourceMemory]
		all = append(all, withEvidence(
			denies.WithRemedy("the guard has %s CPU and %s memory: change the chart's values guard.cpu and guard.memory, or the LimitRange",
				cpu.String(), memory.String()),
			gives.WithRemedy("kubectl -n %s edit limitrange %s, and remove the GPU from max, min, default and defaultRequest", r.Namespace, r.Name),
			rules.WithRemedy("kubectl -n %s edit limitrange %s, and remove the GPU from max and min; limit GPUs by policy or by a ResourceQuota",
				r.Namespace, r.Name))...)
	}
	return all
}

// withGPUs adds the GPUs that a field of an item names, but for a default of none.
func withGPUs(to Finding, where, field string, list corev1.ResourceList) Finding {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if amount := list[name]; strings.HasPrefix(string(name), nvidia.ResourcePrefix) && (field != "default" || !amount.IsZero()) {
			to = to.With(where, field+"["+string(name)+"]", amount.String())
		}
	}
	return to
}

// guardResources are the requests of each of the guard's containers.
func guardResources(f *Facts) corev1.ResourceList {
	cpu, memory := installed.GuardCPU, installed.GuardMemory
	if g := installed.Guard(f.Deployment); g != nil {
		cpu, memory = cmp.Or(g.CPU, cpu), cmp.Or(g.Memory, memory)
	}
	list := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		if q, err := resource.ParseQuantity(text); err == nil {
			list[name] = q
		}
	}
	return list
}
