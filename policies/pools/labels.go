package pools

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/mig"
)

// Labels that describe a node's GPUs, as GPU feature discovery writes them (those of a resource are its name before any
// renaming, a dot and a word: "nvidia.com/gpu.replicas", "nvidia.com/mig-1g.10gb.memory").
const (
	labelMIGStrategy = "nvidia.com/mig.strategy"

	labelMPSCapable     = "nvidia.com/mps.capable"
	labelDriverMinor    = "nvidia.com/cuda.driver-version.minor"
	labelDriverMajorOld = "nvidia.com/cuda.driver.major"
	labelDriverMinorOld = "nvidia.com/cuda.driver.minor"

	sharedSuffix  = ".shared" // of a renamed resource
	productShared = "-SHARED" // of the product, where sharing did not rename the resource
	productMIG    = "-MIG-"   // in the product, before the profile
)

const (
	maxDevices = 1024 // of one node
)

// isPoolResource reports whether pools are made of the extended resource name.
func isPoolResource(name string) bool {
	if name == api.ResourceGPU || name == nvidia.SharedGPU {
		return true
	}
	profile, isMIG := strings.CutPrefix(strings.TrimSuffix(name, sharedSuffix), nvidia.MIGPrefix)
	return isMIG && mig.NamesResource(profile)
}

// nodeReader reads one node's labels about one resource. Labels come from the node: each value is bounded and checked,
// and one that cannot be read is unknown and noted.
type nodeReader struct {
	labels map[string]string
	pool   Pool
}

// OfferOf returns the offer that a node's labels describe under the resource, at this time: a Pool without a name,
// nodes or site. Its Strategy is "" if they are silent or contradict each other, its driver 0 if they are silent.
func OfferOf(node *corev1.Node, resource string) Pool {
	r := nodeReader{labels: node.Labels, pool: Pool{Resource: resource}}
	base, renamed := strings.CutSuffix(resource, sharedSuffix)
	switch {
	case r.has(base + ".product"), r.has(base + ".replicas"), r.has(base + ".sharing-strategy"):
		r.readDiscovery(base, renamed)
		r.checkCount(base, node)
	case r.has(labelGKEAccelerator):
		r.readGKE(node)
	default:
		r.unknown("no label shows how its GPUs are shared: deploy GPU feature discovery, or declare the pool")
	}
	r.checkInstance(base)
	r.readDriver()
	r.pool.TrustDomain = r.text(strategies.LabelTrustDomain)
	r.require(strategies.LabelTrustDomain)
	return r.pool
}

// has reports whether the node carries the label.
func (r *nodeReader) has(key string) bool { _, ok := r.labels[key]; return ok }

// note adds a sentence for people.
func (r *nodeReader) note(format string, args ...any) {
	r.pool.Notes = append(r.pool.Notes, fmt.Sprintf(format, args...))
}

// unknown gives up on how the devices are shared, and notes the reason.
func (r *nodeReader) unknown(format string, args ...any) {
	r.pool.Strategy = ""
	r.note(format, args...)
}

// text is a label's value; "" where it is missing or no valid value.
func (r *nodeReader) text(key string) string {
	value := r.labels[key]
	if len(validation.IsValidLabelValue(value)) > 0 {
		r.note("label %s: %s is not a label value", key, message.Quote(value))
		return ""
	}
	return value
}

// number is a label's value, from 0 to most. known is false where it is missing or unreadable, and then n is 0.
func (r *nodeReader) number(key string, most int64) (n int64, known bool) {
	value, ok := r.labels[key]
	if !ok || value == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 || n > most || value[0] == '+' {
		r.note("label %s: %s is not a number from 0 to %d", key, message.Quote(value), most)
		return 0, false
	}
	return n, true
}

// require makes labels of the node that its offer was read from requirements of the pool.
func (r *nodeReader) require(keys ...string) {
	for _, key := range keys {
		value, ok := r.labels[key]
		if !ok || len(validation.IsValidLabelValue(value)) > 0 {
			continue
		}
		r.pool.Requirements = append(r.pool.Requirements, corev1.NodeSelectorRequirement{
			Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value},
		})
	}
}

// readDriver reads the driver's release, in the spelling of today or the older one. The pool requires the generation,
// not the release: a pod that waits must not miss the node whose driver was just updated.
func (r *nodeReader) readDriver() {
	key, minorKey := nvidia.LabelDriverMajor, labelDriverMinor
	if !r.has(key) {
		key, minorKey = labelDriverMajorOld, labelDriverMinorOld
	}
	major, _ := r.number(key, nvidia.MaxDriverVersion)
	if major == 0 {
		return
	}
	minor, _ := r.number(minorKey, nvidia.MaxDriverVersion)
	r.pool.DriverMajor, r.pool.DriverMinor = int(major), int(minor)
	switch {
	case major >= nvidia.DriverWithLimits:
		r.bound(key, corev1.NodeSelectorOpGt, nvidia.DriverWithLimits-1)
	case major >= nvidia.DriverForGuard:
		r.bound(key, corev1.NodeSelectorOpGt, nvidia.DriverForGuard-1)
		r.bound(key, corev1.NodeSelectorOpLt, nvidia.DriverWithLimits)
	default:
		r.bound(key, corev1.NodeSelectorOpLt, nvidia.DriverForGuard)
	}
}

// bound requires that a label's number is above (Gt) or below (Lt) value.
func (r *nodeReader) bound(key string, op corev1.NodeSelectorOperator, value int) {
	r.pool.Requirements = append(r.pool.Requirements, corev1.NodeSelectorRequirement{
		Key: key, Operator: op, Values: []string{strconv.Itoa(value)},
	})
}
