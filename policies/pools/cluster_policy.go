package pools

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ClusterPolicies is the GPU Operator's resource.
var ClusterPolicies = schema.GroupVersionResource{Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"}

// ClusterPolicy holds the fields that are read of the GPU Operator's object. Its Go types are not used: they bring the
// Prometheus Operator's and two of NVIDIA's modules along for a dozen fields.
type ClusterPolicy struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Operator struct {
			RuntimeClass string `json:"runtimeClass"`
		} `json:"operator"`
		Driver       operand `json:"driver"`
		Toolkit      operand `json:"toolkit"`
		DevicePlugin struct {
			operand
			Config struct {
				Name    string `json:"name"`
				Default string `json:"default"`
			} `json:"config"`
		} `json:"devicePlugin"`
		MIG struct {
			Strategy string `json:"strategy"`
		} `json:"mig"`
		SandboxWorkloads struct {
			Enabled         *bool  `json:"enabled"`
			DefaultWorkload string `json:"defaultWorkload"` // of nodes without a label: "container", "vm-passthrough", "vm-vgpu"
		} `json:"sandboxWorkloads"`
		MIGManager struct {
			Config struct {
				Name string `json:"name"`
			} `json:"config"`
		} `json:"migManager"`
		CDI struct {
			Enabled          *bool `json:"enabled"`
			Default          *bool `json:"default"`
			NRIPluginEnabled *bool `json:"nriPluginEnabled"`
		} `json:"cdi"`
	} `json:"spec"`
	Status struct {
		State     string `json:"state"`
		Namespace string `json:"namespace"`
	} `json:"status"`
}

// operand is a part that the operator deploys.
type operand struct {
	Enabled *bool  `json:"enabled"`
	Version string `json:"version"`
	Env     []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
}

// ReadClusterPolicy reads a ClusterPolicy from JSON. Where fields are of another type than expected, it returns an error and all other
// fields.
func ReadClusterPolicy(raw []byte) (*ClusterPolicy, error) {
	var p ClusterPolicy
	err := json.Unmarshal(raw, &p)
	if err == nil {
		return &p, nil
	}
	err = fmt.Errorf("read ClusterPolicy: %w", err)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &p, err
	}
	return nil, err
}

// Operator returns how the operator has devices passed to containers. nil: there is no ClusterPolicy.
func (p *ClusterPolicy) Operator() *Operator {
	if p == nil {
		return nil
	}
	set := func(b *bool) bool { return b != nil && *b }
	o := &Operator{CDI: set(p.Spec.CDI.Enabled), NRIPlugin: set(p.Spec.CDI.NRIPluginEnabled)}
	for _, e := range p.Spec.Toolkit.Env {
		switch e.Name {
		case "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED":
			o.IgnoresVariable = strings.EqualFold(e.Value, "false")
		case "ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS":
			o.AcceptsMounts = strings.EqualFold(e.Value, "true")
		case "NRI_MANAGEMENT_CDI_DEVICE_NAMESPACES":
			o.ManagementNamespaces = strings.FieldsFunc(e.Value, func(r rune) bool { return r == ',' || r == ' ' })
		}
	}
	return o
}
