package config

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/document"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/mig"
)

var driverText = regexp.MustCompile(`^[1-9][0-9]{0,3}(\.[0-9]{1,4}){1,2}$`)

// maxReservePerClaim is more than the contexts of a container's processes take.
const maxReservePerClaim = quantity.MiB(16 << 10)

// validatePools checks the policy's pools, which are the whole cluster's.
func (p *Policy) validatePools(e *problems, at *field.Path) {
	spec := p.Pools
	if p.Namespaces != nil && (spec.Declared != nil || spec.Complete || spec.RememberFor != nil || spec.Reserve != (ReserveSpec{})) {
		e.add(field.Forbidden(at, "pools belong to the cluster's default policy, the one without namespaces"))
	}
	if spec.Reserve.Percent != nil {
		between(e, at.Child("reserve", "percent"), *spec.Reserve.Percent, 0, 90)
	}
	if m := spec.Reserve.PerClaim; m != nil {
		between(e, at.Child("reserve", "perClaim"), *m, 0, maxReservePerClaim)
	}
	if spec.RememberFor != nil {
		between(e, at.Child("rememberFor"), spec.RememberFor.Duration, 0, 30*24*time.Hour)
	}
	declared := at.Child("declared")
	if atMost(e, declared, len(spec.Declared), maxPoolSpecs) {
		return
	}
	for i := range spec.Declared {
		d, path := &spec.Declared[i], declared.Index(i)
		d.validate(e, path)
		for _, other := range spec.Declared[:i] {
			if d.Name != "" && d.Name == other.Name {
				e.add(field.Duplicate(path.Child("name"), document.Shorten(d.Name)))
			}
			if len(d.Selector) > 0 && d.Resource == other.Resource && maps.Equal(d.Selector, other.Selector) {
				e.add(field.Forbidden(path.Child("selector"), "pool "+message.Quote(other.Name)+" selects the same nodes for the same resource"))
			}
		}
	}
}

func (d *PoolSpec) validate(e *problems, at *field.Path) {
	if d.Name == "" {
		e.add(field.Required(at.Child("name"), `a name for people, such as "l4-shared"`))
	} else {
		e.each(at.Child("name"), d.Name, validation.IsDNS1123Subdomain(d.Name))
	}
	if len(d.Selector) == 0 {
		e.add(field.Required(at.Child("selector"), "labels that the pool's nodes carry; an empty selector would claim every node"))
	}
	for _, key := range slices.Sorted(maps.Keys(d.Selector)) {
		e.each(at.Child("selector"), key, validation.IsQualifiedName(key))
		e.each(at.Child("selector").Key(document.Shorten(key)), d.Selector[key], validation.IsValidLabelValue(d.Selector[key]))
	}
	d.validateResource(e, at.Child("resource"))
	d.validateSharing(e, at)
	if d.Granular {
		d.validateGranular(e, at)
	}
	d.validateMIG(e, at)
	d.validateDriver(e, at)
	for i, taint := range d.Taints {
		validateTaint(e, at.Child("taints").Index(i), taint)
	}
	e.each(at.Child("trustDomain"), d.TrustDomain, validation.IsValidLabelValue(d.TrustDomain))
}

func (d *PoolSpec) validateResource(e *problems, at *field.Path) {
	switch {
	case d.Resource == "":
		e.add(field.Required(at, "the name under which the nodes offer it, such as "+nvidia.SharedGPU))
	case !strings.Contains(d.Resource, "/"), strings.HasPrefix(d.Resource, "kubernetes.io/"),
		strings.Contains(d.Resource, ".kubernetes.io/"), strings.HasPrefix(d.Resource, "requests."):
		e.invalid(at, d.Resource, "accepted: an extended resource with its domain, such as %s", nvidia.SharedGPU)
	default:
		e.each(at, d.Resource, validation.IsQualifiedName(d.Resource))
	}
}

// declarable are the strategies of pools that can be declared. Devices of claims are read from the drivers'
// ResourceSlices.
func declarable() []api.StrategyName {
	return strategies.NamesWith(func(s *strategies.Strategy) bool { return !s.Claims })
}

// validateSharing checks strategy, replicas and MPS provider against each other.
func (d *PoolSpec) validateSharing(e *problems, at *field.Path) {
	if d.Strategy == "" {
		e.add(field.Required(at.Child("strategy"), "how its devices are shared, one of "+message.JoinNames(declarable())))
		return
	}
	oneOf(e, at.Child("strategy"), d.Strategy, declarable())
	strategy, replicas := strategies.Named(d.Strategy), at.Child("replicas")
	if strategy.MPS && d.MPSProvider == "" {
		e.add(field.Required(at.Child("mpsProvider"), "who runs the MPS daemon: "+message.JoinNames(strategies.ProviderNames())))
	}
	switch {
	case strategy.Shared() && d.Replicas == 0:
		e.add(field.Required(replicas, "how many share one device, as the device plugin is configured"))
	case strategy.Shared():
		between(e, replicas, d.Replicas, 2, strategy.MaxReplicas)
	case d.Replicas != 0 && d.Replicas != 1:
		e.add(field.Invalid(replicas, d.Replicas, "a pool of strategy "+document.Shorten(string(d.Strategy))+" is not shared; leave it out"))
	}
	if d.MPSProvider == "" {
		return
	}
	oneOf(e, at.Child("mpsProvider"), d.MPSProvider, strategies.ProviderNames())
	if !strategy.MPS {
		withMPS := strategies.NamesWith(func(s *strategies.Strategy) bool { return s.MPS })
		e.add(field.Forbidden(at.Child("mpsProvider"), "only pools of strategy "+message.JoinNames(withMPS)+" have one"))
	}
}

// minGranule is the least part of a device: much less than any process needs, and enough for a part of the reserve.
const minGranule = quantity.MiB(128)

// validateGranular checks the settings that make replicas parts of one device. The memory has to be declared: values
// computed from it have to stay the same while nodes come and go.
func (d *PoolSpec) validateGranular(e *problems, at *field.Path) {
	granular := at.Child("granular")
	if why := strategies.ProviderNamed(d.MPSProvider).NoParts; why != "" {
		e.add(field.Forbidden(granular, why))
		return
	}
	if !strategies.Named(d.Strategy).Granular || d.MIGProfile != "" {
		e.add(field.Forbidden(granular, "only pools of strategy "+
			message.JoinNames(strategies.NamesWith(func(s *strategies.Strategy) bool { return s.Granular }))+
			" without migProfile divide a device into parts"))
		return
	}
	if d.Resource != nvidia.SharedGPU {
		e.add(field.Forbidden(granular, "pods must tell parts from whole GPUs: offer them as "+nvidia.SharedGPU+" (renameByDefault: true)"))
	}
	switch {
	case d.DeviceMemory == 0:
		e.add(field.Required(at.Child("deviceMemory"), "what a part is computed from, as nvidia-smi shows it, such as 23034Mi"))
	case d.Replicas > 0 && d.DeviceMemory/quantity.MiB(d.Replicas) < minGranule:
		e.invalid(at.Child("replicas"), strconv.Itoa(d.Replicas), "parts of less than %s; 1 GiB each is usual", minGranule)
	}
}

func (d *PoolSpec) validateMIG(e *problems, at *field.Path) {
	strategy, profile := strategies.Named(d.Strategy), at.Child("migProfile")
	switch {
	case d.MIGProfile == "" && strategy.Unit == strategies.UnitInstance:
		e.add(field.Required(profile, `the instances' profile, such as "1g.10gb"`))
	case d.MIGProfile != "" && !mig.NamesResource(d.MIGProfile):
		e.invalid(profile, d.MIGProfile, `accepted: a profile as resources name it, such as "1g.10gb"`)
	case instanceOf(d.MIGProfile).Compute > 0:
		e.invalid(profile, d.MIGProfile, "a compute instance shares the memory of its GPU instance with others, so that nothing holds a slice of it")
	case d.MIGProfile != "" && !strategy.OnInstances:
		e.add(field.Forbidden(profile, "MIG instances are held alone (strategy mig) or time-sliced"))
	}
	switch instance := at.Child("instanceMemory"); {
	case d.InstanceMemory != 0 && d.MIGProfile == "":
		e.add(field.Forbidden(instance, "only pools with a migProfile have one; a device's own memory is deviceMemory"))
	case d.DeviceMemory != 0 && d.InstanceMemory > d.DeviceMemory:
		e.invalid(instance, d.InstanceMemory.String(), "more than deviceMemory (%s)", d.DeviceMemory)
	}
}

func instanceOf(profile string) mig.Profile {
	read, _ := mig.Parse(profile)
	return read
}

func (d *PoolSpec) validateDriver(e *problems, at *field.Path) {
	if d.Driver != "" && !driverText.MatchString(d.Driver) {
		e.invalid(at.Child("driver"), d.Driver, `accepted: a release such as "580.95.05"`)
		return
	}
	if major, _ := nvidia.DriverVersion(d.Driver); d.DriverLimits && major != 0 && major < nvidia.DriverWithLimits {
		e.add(field.Forbidden(at.Child("driverLimits"),
			"drivers before "+strconv.Itoa(nvidia.DriverWithLimits)+" limit no memory, and driver says "+d.Driver))
	}
}

func validateTaint(e *problems, at *field.Path, t corev1.Taint) {
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	e.each(at.Child("key"), t.Key, validation.IsQualifiedName(t.Key))
	e.each(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))
	oneOf(e, at.Child("effect"), t.Effect, effects)
	if t.TimeAdded != nil {
		e.add(field.Forbidden(at.Child("timeAdded"), "a declared pool has no times"))
	}
}

func validateToleration(e *problems, at *field.Path, t corev1.Toleration) {
	if t.Key == "" && t.Operator != corev1.TolerationOpExists {
		e.add(field.Required(at.Child("key"), "a taint's key, or operator Exists"))
	}
	if t.Key != "" {
		e.ErrorList = append(e.ErrorList, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
	}
	oneOf(e, at.Child("operator"), t.Operator, []corev1.TolerationOperator{"", corev1.TolerationOpExists, corev1.TolerationOpEqual})
	if t.Operator == corev1.TolerationOpExists && t.Value != "" {
		e.invalid(at.Child("value"), t.Value, "operator Exists goes with no value")
	}
	e.each(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	if !slices.Contains(effects, t.Effect) {
		e.add(field.NotSupported(at.Child("effect"), corev1.TaintEffect(document.Shorten(string(t.Effect))), effects[1:]))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		e.add(field.Forbidden(at.Child("tolerationSeconds"), "goes with effect NoExecute only"))
	}
}
