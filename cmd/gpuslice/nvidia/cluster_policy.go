package nvidia

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ClusterPolicies is the GPU Operator's resource.
var ClusterPolicies = schema.GroupVersionResource{Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"}

// ClusterPolicy is what is read of the GPU Operator's object. Its Go types are not used: they bring the Prometheus
// Operator's and two of NVIDIA's modules along for a dozen fields.
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

// ReadClusterPolicy reads a ClusterPolicy from JSON.
func ReadClusterPolicy(raw []byte) (*ClusterPolicy, error) {
	var p ClusterPolicy
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("read ClusterPolicy: %w", err)
	}
	return &p, nil
}

// CDI reports whether the operator passes devices by CDI.
func (p *ClusterPolicy) CDI() bool { return p.Spec.CDI.Enabled != nil && *p.Spec.CDI.Enabled }

// NRI reports whether the operator's NRI plugin passes devices: there is no runtime class then.
func (p *ClusterPolicy) NRI() bool {
	return p.Spec.CDI.NRIPluginEnabled != nil && *p.Spec.CDI.NRIPluginEnabled
}

// Release is a version of three numbers; the rest of a tag, such as "-ubi8", is left out.
type Release [3]int

// ParseRelease reads a version or the tag of an image; false where it is none.
func ParseRelease(text string) (Release, bool) {
	text, _, _ = strings.Cut(text, "@")
	text = strings.TrimPrefix(text[strings.LastIndex(text, ":")+1:], "v")
	text, _, _ = strings.Cut(text, "-")
	var r Release
	parts := strings.Split(text, ".")
	if len(parts) < 2 || len(parts) > len(r) {
		return r, false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return r, false
		}
		r[i] = n
	}
	return r, true
}

// Before reports whether r is older than other.
func (r Release) Before(other Release) bool {
	for i := range r {
		if r[i] != other[i] {
			return r[i] < other[i]
		}
	}
	return false
}
