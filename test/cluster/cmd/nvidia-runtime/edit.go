package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// settings describe the additions to a container with a GPU.
type settings struct {
	// Runtime is the path of runc.
	Runtime string
	// Mounts and Env are added to the container's.
	Mounts []mount
	Env    []string
	// StandIn is the program that runs in place of one that an image lacks, in images that have the stand-in. Kubectl is a
	// command line that reads the container's pod.
	StandIn string
	Kubectl []string

	bundle string // the folder of the container
}

// namespaceWord in a mount's source stands for the namespace of the container's pod, so that pods of different tests
// can be given different devices.
const namespaceWord = "{namespace}"

// namespaceAnnotation is containerd's annotation with the namespace of a container's pod.
const namespaceAnnotation = "io.kubernetes.cri.sandbox-namespace"

// mount is a file or folder of the node in a container, read-only unless Writable. One that is the Driver's comes with a device by CDI.
type mount struct {
	Source, Destination string
	Writable, Driver    bool
}

// edit adds the settings s to an OCI container configuration, if the container requests a GPU or was given one by CDI.
// All else in it stays as it is.
func edit(config []byte, s settings) ([]byte, error) {
	var spec map[string]any
	in := json.NewDecoder(bytes.NewReader(config))
	in.UseNumber()
	if err := in.Decode(&spec); err != nil {
		return nil, fmt.Errorf("decode container: %w", err)
	}
	process, ok := spec["process"].(map[string]any)
	if !ok {
		return config, nil
	}
	annotations, _ := spec["annotations"].(map[string]any)
	replaced, err := s.standIn(spec, process, annotations)
	if err != nil {
		return nil, err
	}
	env, _ := process["env"].([]any)
	wanted, nodes := wantsGPU(env), deviceNodes(spec)
	if !wanted && nodes == "" {
		if replaced {
			return json.Marshal(spec)
		}
		return config, nil
	}
	for _, v := range s.Env {
		env = append(env, v)
	}
	if !wanted {
		env = append(env, "GPUSLICE_FAKE_GPU_VISIBLE="+nodes)
	}
	process["env"] = env
	namespace, _ := annotations[namespaceAnnotation].(string)
	mounts, _ := spec["mounts"].([]any)
	for _, m := range s.Mounts {
		if m.Driver && !wanted {
			continue
		}
		access := "ro"
		if m.Writable {
			access = "rw"
		}
		mounts = append(mounts, map[string]any{"destination": m.Destination, "type": "bind",
			"source":  strings.ReplaceAll(m.Source, namespaceWord, namespace),
			"options": []string{"rbind", access, "nosuid", "nodev"}})
	}
	spec["mounts"] = mounts
	edited, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode container: %w", err)
	}
	return edited, nil
}

// deviceNode is the path of a GPU's device node.
var deviceNode = regexp.MustCompile(`^/dev/nvidia([0-9]+)$`)

// deviceNodes are the minor numbers of the GPUs whose device nodes a container has, with commas.
func deviceNodes(spec map[string]any) string {
	linux, _ := spec["linux"].(map[string]any)
	devices, _ := linux["devices"].([]any)
	var minors []string
	for _, d := range devices {
		device, _ := d.(map[string]any)
		path, _ := device["path"].(string)
		if m := deviceNode.FindStringSubmatch(path); m != nil {
			minors = append(minors, m[1])
		}
	}
	return strings.Join(minors, ",")
}

// wantsGPU reports whether NVIDIA's runtime would give a container with this environment the management library:
// devices are named, and the capability "utility", which is among the defaults, is requested.
func wantsGPU(env []any) bool {
	switch variable(env, "NVIDIA_VISIBLE_DEVICES") {
	case "", "void", "none":
		return false
	}
	capabilities := variable(env, "NVIDIA_DRIVER_CAPABILITIES")
	if capabilities == "" {
		return true
	}
	list := strings.Split(capabilities, ",")
	return slices.Contains(list, "utility") || slices.Contains(list, "all")
}

// variable returns the value that a process with this environment sees: the last one.
func variable(env []any, name string) string {
	for _, v := range slices.Backward(env) {
		text, _ := v.(string)
		if value, ok := strings.CutPrefix(text, name+"="); ok {
			return value
		}
	}
	return ""
}
