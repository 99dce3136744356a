package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Variables of a stand-in: the properties of its container.
const (
	portsVariable = "STANDIN_PORTS" // the container's TCP ports, with commas
	endsVariable  = "STANDIN_ENDS"  // "init" or "job" if the container has to end by itself
)

// standIn makes the stand-in run in place of a program that the container's image lacks, and reports whether it did.
func (s settings) standIn(spec, process, annotations map[string]any) (bool, error) {
	root, _ := spec["root"].(map[string]any)
	folder, _ := root["path"].(string)
	args, _ := process["args"].([]any)
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(s.bundle, folder)
	}
	if s.StandIn == "" || root == nil || len(args) == 0 || !isFile(filepath.Join(folder, s.StandIn)) {
		return false, nil
	}
	program, _ := args[0].(string)
	if program != s.StandIn {
		if strings.Contains(program, "/") && isFile(filepath.Join(folder, program)) {
			return false, nil
		}
		args = append([]any{s.StandIn}, args...)
	}
	process["args"] = args
	ports, ends, err := s.container(annotations)
	if err != nil {
		return false, err
	}
	env, _ := process["env"].([]any)
	process["env"] = append(env, portsVariable+"="+ports, endsVariable+"="+ends)
	return true, nil
}

// container reads the pod's description of the container.
func (s settings) container(annotations map[string]any) (ports, ends string, err error) {
	text := func(key string) string {
		value, _ := annotations["io.kubernetes.cri."+key].(string)
		return value
	}
	if len(s.Kubectl) == 0 {
		return "", "", nil
	}
	args := append(slices.Clone(s.Kubectl[1:]), "get", "pod", text("sandbox-name"), "--namespace="+text("sandbox-namespace"), "--output=json")
	out, err := exec.Command(s.Kubectl[0], args...).Output()
	if err != nil {
		return "", "", fmt.Errorf("read the container's pod: %w", err)
	}
	var pod corev1.Pod
	if err := json.Unmarshal(out, &pod); err != nil {
		return "", "", fmt.Errorf("decode the container's pod: %w", err)
	}
	ports, ends = about(pod.Spec, text("container-name"))
	return ports, ends, nil
}

// about is a pod's description of one of its containers.
func about(spec corev1.PodSpec, name string) (ports, ends string) {
	for i, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if c.Name != name {
			continue
		}
		var all []string
		for _, p := range c.Ports {
			if p.Protocol != corev1.ProtocolUDP {
				all = append(all, fmt.Sprint(p.ContainerPort))
			}
		}
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		switch {
		case i < len(spec.InitContainers) && !sidecar:
			ends = "init"
		case i >= len(spec.InitContainers) && spec.RestartPolicy != corev1.RestartPolicyAlways:
			ends = "job"
		}
		return strings.Join(all, ","), ends
	}
	return "", ""
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}
