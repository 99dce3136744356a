#!/usr/bin/env bash
# One would expect: Kueue transforms a pod's resources as configured, then leaves out excluded prefixes, and adds up what is left.
# What happens:
# - excludeResourcePrefixes come first, so a prefix that covers a transformation's input leaves nothing to transform: the pod counts
#   nothing of the output. A prefix of the output excludes nothing.
# - An output in parts is rounded up to a whole for each pod before it is multiplied: four pods with 250m each count 4.
# - Where a pod also requests the output's name itself, the two are added or one overwrites the other, by the order of a Go map: one pod
#   counts 1 or 2 from call to call.
# sigs.k8s.io/kueue v0.17.0, pkg/workload/workload.go (dropExcludedResources, applyResourceTransformations, totalRequestsFromPodSets),
# pkg/resources/requests.go (ResourceValue). In v0.19 the third behaves differently.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > go.mod <<'END'
module finding

go 1.26

require sigs.k8s.io/kueue v0.17.0
END
cat > main.go <<'END'
package main

import (
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
)

const output = "example.com/units"

// counted is what Kueue counts of the output for so many pods with these requests.
func counted(pods int32, requests map[string]string, prefixes []string, input, factor string) int64 {
	list := corev1.ResourceList{}
	for name, quantity := range requests {
		list[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	w := &kueue.Workload{}
	w.Spec.PodSets = []kueue.PodSet{{Name: "main", Count: pods, Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list}}}}}}}
	replace := config.Replace
	info := workload.NewInfo(w, workload.WithExcludedResourcePrefixes(prefixes),
		workload.WithResourceTransformations([]config.ResourceTransformation{{
			Input: corev1.ResourceName(input), Strategy: &replace, Outputs: corev1.ResourceList{output: resource.MustParse(factor)}}}))
	return info.TotalRequests[0].Requests[output]
}

func main() {
	same := true
	expect := func(title string, got, want any) {
		fmt.Printf("%-82s %v\n", title, got)
		same = same && got == want
	}
	const gpumem, gpu = "nvidia.com/gpumem", "nvidia.com/gpu"
	memory, one, four := map[string]string{gpumem: "4096"}, map[string]string{gpu: "1"}, map[string]string{gpu: "4"}
	expect("gpumem 4096 transformed to units:", counted(1, memory, nil, gpumem, "1"), int64(4096))
	expect("the same, with excludeResourcePrefixes [nvidia.com/]:", counted(1, memory, []string{"nvidia.com/"}, gpumem, "1"), int64(0))
	expect("the same, with excludeResourcePrefixes [example.com/]:", counted(1, memory, []string{"example.com/"}, gpumem, "1"), int64(4096))
	expect("four pods with one share each, a share is 250m:", counted(4, one, nil, gpu, "250m"), int64(4))
	expect("one pod with four shares:", counted(1, four, nil, gpu, "250m"), int64(1))
	seen := map[int64]bool{}
	for range 2000 {
		seen[counted(1, map[string]string{gpu: "1", output: "1"}, nil, gpu, "1")] = true
	}
	expect("a pod with one GPU and one unit, counted 2000 times, is both 1 and 2:", seen[1] && seen[2] && len(seen) == 2, true)
	if !same {
		fmt.Println("CHANGED: the behaviour is another one")
		os.Exit(1)
	}
}
END
echo "sigs.k8s.io/kueue v0.17.0"
CGO_ENABLED=0 GOFLAGS=-mod=mod go run -trimpath . 2> err || { cat err; exit 1; }
