package clusters

import (
	"cmp"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/cmd/client/manifest"
)

// isResource reports whether o is of resource.k8s.io, in a version that is read. v1beta2 is written as v1 is.
func isResource(o manifest.Object) bool {
	group, version, _ := strings.Cut(o.APIVersion, "/")
	return group == resourcev1.GroupName && slices.Contains([]string{"v1", "v1beta2", "v1beta1"}, version)
}

// AddClaim keeps the spec of a ResourceClaim or a ResourceClaimTemplate of a file, and the template that NVIDIA's driver makes of a
// ComputeDomain. Other objects are left out.
func (c *Cluster) AddClaim(o manifest.Object, namespace string) error {
	of := cmp.Or(o.Namespace, namespace) + "/"
	switch {
	case o.Kind == "ComputeDomain" && strings.HasPrefix(o.APIVersion, "resource.nvidia.com/"):
		domain, err := decode[computeDomain](o)
		keep(&c.claims.Templates, of+domain.Spec.Channel.ResourceClaimTemplate.Name, &resourcev1.ResourceClaimSpec{}) // a channel is no GPU
		return err
	case !isResource(o):
	case o.Kind == "ResourceClaim":
		claim, err := decode[resourcev1.ResourceClaim](o)
		beta, _ := decode[betaClaim](o) // the error is the same
		keep(&c.claims.Claims, of+o.Name, beta.Spec.within(&claim.Spec))
		return err
	case o.Kind == "ResourceClaimTemplate":
		template, err := decode[resourcev1.ResourceClaimTemplate](o)
		beta, _ := decode[betaTemplate](o)
		keep(&c.claims.Templates, of+o.Name, beta.Spec.Spec.within(&template.Spec.Spec))
		return err
	}
	return nil
}

// computeDomain has the field of a ComputeDomain of NVIDIA's driver that names the template of the domain's channels.
type computeDomain struct {
	Spec struct {
		Channel struct {
			ResourceClaimTemplate struct {
				Name string `json:"name"`
			} `json:"resourceClaimTemplate"`
		} `json:"channel"`
	} `json:"spec"`
}

// v1beta1 writes without exactly what v1 writes under it.
type (
	betaClaim struct {
		Spec betaSpec `json:"spec"`
	}
	betaTemplate struct {
		Spec betaClaim `json:"spec"`
	}
	betaSpec struct {
		Devices struct {
			Requests []resourcev1.ExactDeviceRequest `json:"requests"`
		} `json:"devices"`
	}
)

// within is spec with the requests of v1beta1 in the place of empty ones.
func (b betaSpec) within(spec *resourcev1.ResourceClaimSpec) *resourcev1.ResourceClaimSpec {
	for i := range min(len(b.Devices.Requests), len(spec.Devices.Requests)) {
		if r := &spec.Devices.Requests[i]; r.Exactly == nil && len(r.FirstAvailable) == 0 {
			r.Exactly = &b.Devices.Requests[i]
		}
	}
	return spec
}

// betaSlice has the devices of a ResourceSlice as v1beta1 writes them: under basic.
type betaSlice struct {
	Spec struct {
		Devices []struct {
			Basic *resourcev1.Device `json:"basic"`
		} `json:"devices"`
	} `json:"spec"`
}

// within puts devices of v1beta1 in the place of those of the slice.
func (b betaSlice) within(published *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	for i := range min(len(b.Spec.Devices), len(published.Spec.Devices)) {
		if basic := b.Spec.Devices[i].Basic; basic != nil {
			basic.Name = published.Spec.Devices[i].Name
			published.Spec.Devices[i] = *basic
		}
	}
	return published
}
