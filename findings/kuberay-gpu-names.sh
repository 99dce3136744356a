#!/usr/bin/env bash
# One would expect: KubeRay starts Ray with --num-gpus from nvidia.com/gpu, or from the sum of a container's GPU resources.
# What happens: every resource whose name ends in "gpu" counts as GPUs, whatever its unit, and the first by alphabet alone: Koordinator's
# koordinator.sh/gpu: 50, which is half a GPU, becomes --num-gpus=50, and example.com/mygpu: 3 wins over nvidia.com/gpu: 1. A shared
# resource whose name goes on after "gpu" (nvidia.com/gpu.shared) gives no --num-gpus.
# github.com/ray-project/kuberay/ray-operator v1.5.0, controllers/ray/utils/resources.go (IsGPUResourceKey),
# controllers/ray/common/pod.go (addWellKnownAcceleratorResources).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > go.mod <<'END'
module finding

go 1.26

require (
	github.com/ray-project/kuberay/ray-operator v1.5.0
	k8s.io/api v0.37.2
	k8s.io/apimachinery v0.37.2
	k8s.io/apiserver v0.37.2
	k8s.io/client-go v0.37.2
	k8s.io/component-base v0.37.2
	sigs.k8s.io/controller-runtime v0.25.2
)
END
cat > main.go <<'END'
package main

import (
	"context"
	"fmt"
	"os"
	"regexp"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/common"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var flag = regexp.MustCompile(`--num-gpus=\d+`)

// start is the flag of a worker whose container has these limits.
func start(limits map[string]string) string {
	list := corev1.ResourceList{}
	for name, quantity := range limits {
		list[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	var template corev1.PodTemplateSpec
	template.Labels = map[string]string{}
	template.Spec.Containers = []corev1.Container{{Name: "worker", Resources: corev1.ResourceRequirements{Limits: list}}}
	pod := common.BuildPod(context.Background(), template, rayv1.WorkerNode, map[string]string{}, "6379", false,
		utils.RayClusterCRD, "head", nil)
	c := pod.Spec.Containers[0]
	found := flag.FindString(fmt.Sprint(c.Command, c.Args))
	if found == "" {
		return "no --num-gpus"
	}
	return found
}

func main() {
	same := true
	for _, c := range []struct {
		limits map[string]string
		want   string
	}{
		{map[string]string{"nvidia.com/gpu": "2"}, "--num-gpus=2"},
		{map[string]string{"nvidia.com/gpu.shared": "2"}, "no --num-gpus"},
		{map[string]string{"koordinator.sh/gpu": "50"}, "--num-gpus=50"},
		{map[string]string{"nvidia.com/gpu": "1", "example.com/mygpu": "3"}, "--num-gpus=3"},
	} {
		got := start(c.limits)
		fmt.Printf("limits %-46s %s\n", fmt.Sprint(c.limits), got)
		same = same && got == c.want
	}
	if !same {
		fmt.Println("CHANGED: the behaviour is another one")
		os.Exit(1)
	}
}
END
echo "github.com/ray-project/kuberay/ray-operator v1.5.0"
CGO_ENABLED=0 GOFLAGS=-mod=mod go run -trimpath . 2> err || { cat err; exit 1; }
