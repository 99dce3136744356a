package pools

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/mig"
)

// readDiscovery reads the labels of GPU feature discovery about a resource, whose name before renaming is base. Labels
// lag behind the device plugin's advertisement, by a minute if its configuration was just changed: while the two
// contradict each other, the sharing of devices is unknown.
func (r *nodeReader) readDiscovery(base string, renamed bool) {
	product, marked := strings.CutSuffix(r.text(base+".product"), productShared)
	product, profile, _ := strings.Cut(product, productMIG)
	r.pool.Product = product
	r.readMemory(base, profile)
	r.readSharing(base)
	shared := r.pool.Sharing().Shared()
	switch {
	case profile == "INVALID":
		r.unknown("MIG strategy single, and the node's GPUs are not all cut into one profile")
	case r.pool.MIGProfile == "" && r.has(base+".slices.gi"):
		r.unknown("label %s.slices.gi shows MIG instances, and no label of their profile", base)
	case r.pool.Strategy == "":
	case renamed && !shared:
		r.unknown("the resource is named %s, but label %s.sharing-strategy reports it as not shared: give feature discovery the device plugin's configuration",
			r.pool.Resource, base)
	case renamed && marked:
		r.unknown("the resource is named %s, but label %s.product reports that sharing did not rename it", r.pool.Resource, base)
	case marked && !shared:
		r.unknown("label %s.product says SHARED, and %s.sharing-strategy that it is not", base, base)
	}
	r.require(base+".product", base+".memory", base+".replicas", base+".sharing-strategy")
	if r.pool.MIGProfile != "" {
		r.require(labelMIGStrategy)
	}
}

// readMemory reads the device memory, or that of an instance: under MIG strategy mixed the profile is in the resource's
// name and the card has labels of its own; under single the labels of nvidia.com/gpu describe the instance and the
// card's size is not labeled.
func (r *nodeReader) readMemory(base, productProfile string) {
	own, _ := r.number(base+".memory", int64(quantity.MaxMemory))
	profile, mixed := strings.CutPrefix(base, nvidia.MIGPrefix)
	switch {
	case mixed:
		r.pool.MIGProfile, r.pool.InstanceMemory = profile, quantity.MiB(own)
		card, _ := r.number(api.ResourceGPU+".memory", int64(quantity.MaxMemory))
		// The labels of nvidia.com/gpu are of one card of the node, which may be another than the instances'.
		if strings.TrimSuffix(r.labels[api.ResourceGPU+".product"], productShared) == r.pool.Product && card >= own {
			r.pool.DeviceMemory = quantity.MiB(card)
			r.require(api.ResourceGPU + ".memory")
		}
	case productProfile != "":
		r.pool.MIGProfile, r.pool.InstanceMemory = productProfile, quantity.MiB(own)
	default:
		r.pool.DeviceMemory = quantity.MiB(own)
	}
}

// checkInstance gives up on compute instances: those of one GPU instance share its memory, and a device plugin may offer each by the
// resource name of the whole instance.
func (r *nodeReader) checkInstance(base string) {
	profile := r.pool.MIGProfile
	if profile == "" {
		profile = strings.TrimPrefix(base, nvidia.MIGPrefix)
	}
	read, ok := mig.Parse(profile)
	switch {
	case !ok:
	case read.Compute > 0:
		r.unknown("%s is a compute instance: it shares the memory of its GPU instance with others", profile)
	default:
		for slices := 1; slices < read.Slices; slices++ {
			part := fmt.Sprintf("%s%dc.%s", nvidia.MIGPrefix, slices, profile)
			if r.has(part + ".count") {
				r.unknown("label %s.count shows compute instances, which the device plugin offers as %s too: they share the memory of one",
					part, r.pool.Resource)
			}
		}
	}
}

// readSharing reads strategy and replicas. Releases of GPU feature discovery from before MPS write no
// sharing-strategy.
func (r *nodeReader) readSharing(base string) {
	replicas, known := r.number(base+".replicas", quantity.MaxReplicas)
	whole := unshared(r.pool.MIGProfile).Name
	var strategy api.StrategyName
	switch word := r.text(base + ".sharing-strategy"); {
	case word == "none", word == "" && replicas == 1:
		strategy = whole
	case word == "" && replicas > 1:
		strategy = strategies.With(func(s *strategies.Strategy) bool { return s.Unlabeled }).Name
	default:
		strategy = strategies.Labeled(strategies.LabelsDiscovery, word).Name
	}
	r.pool.Strategy, r.pool.Replicas = strategy, int(replicas)
	if strategy == whole && !r.has(base+".replicas") {
		r.pool.Replicas = 1
	}
	r.judgeSharing(base, strategy == whole, known)
}

// unshared is the strategy of a device, or of an instance of a profile, that is not shared.
func unshared(migProfile string) *strategies.Strategy {
	if migProfile != "" {
		return strategies.OfUnit(strategies.UnitInstance)
	}
	return strategies.OfUnit(strategies.UnitDevice)
}

// judgeSharing gives up where strategy and replicas cannot both be true.
func (r *nodeReader) judgeSharing(base string, whole, known bool) {
	word := message.Quote(r.labels[base+".sharing-strategy"])
	replicas, strategy := r.pool.Replicas, r.pool.Sharing()
	switch {
	case r.pool.Strategy == "":
		r.unknown("label %s.sharing-strategy: %s does not tell how its GPUs are shared", base, word)
	case !known && r.has(base+".replicas"), !known && !whole:
		r.unknown("label %s.replicas does not tell how many share one of its GPUs", base)
	case whole && known && replicas != 1:
		r.unknown("label %s.sharing-strategy says %s, and %s.replicas %d", base, word, base, replicas)
	case !whole && known && replicas < 2:
		r.unknown("label %s.sharing-strategy says %s, and %s.replicas %d", base, word, base, replicas)
	case r.pool.MIGProfile != "" && !strategy.OnInstances:
		r.unknown("label %s.sharing-strategy says %s, which NVIDIA's plugin does not offer on MIG", base, word)
	case !strategy.MPS:
	case r.labels[labelMPSCapable] == "false":
		r.unknown("label %s.sharing-strategy says %s, and %s false", base, word, labelMPSCapable)
	default:
		r.pool.MPSProvider = strategies.ProviderLabeled(strategies.LabelsDiscovery).Name
	}
}

// checkCount gives up where a node has more than its labels speak of: with GPUs of several kinds they describe one, and HAMi's device
// plugin offers more than there are.
func (r *nodeReader) checkCount(base string, node *corev1.Node) {
	count, known := r.number(base+".count", maxDevices)
	if !known || r.pool.Replicas < 1 || r.pool.Strategy == "" {
		return
	}
	name := corev1.ResourceName(r.pool.Resource)
	offered := max(units(node.Status.Capacity, name), units(node.Status.Allocatable, name))
	if told := count * int64(r.pool.Replicas); offered > told {
		// Labels that describe one of several kinds describe another a minute later: the pool does not change with them.
		r.pool.Product, r.pool.DeviceMemory, r.pool.InstanceMemory, r.pool.Requirements, r.pool.Replicas = "", 0, 0, nil, 0
		r.pool.MPSProvider, r.pool.Notes = "", nil
		r.unknown("the node has %d of %s, more than its labels show (%s.count x replicas): GPUs of several kinds, or shared by something else than NVIDIA's device plugin?",
			offered, r.pool.Resource, base)
	}
}

// units is how many of a resource a list holds; 0 where it holds none, or no number that makes sense.
func units(list corev1.ResourceList, name corev1.ResourceName) int64 {
	q := list[name]
	n, ok := q.AsInt64()
	if !ok || n < 0 || n > maxDevices*quantity.MaxReplicas {
		return 0
	}
	return n
}
