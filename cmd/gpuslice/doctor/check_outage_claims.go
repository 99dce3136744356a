package doctor

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/claims"
)

// checkOutageClaims looks for namespaces whose claims of other devices are denied while gpuslice is down, and for those where that is
// not so and GPUs can be claimed as well.
func checkOutageClaims(f *Facts) []Finding {
	denied := newFinding(Note, "while gpuslice is down, pods with claims are denied here, also of other devices than GPUs").
		WithRemedy("kubectl label namespace NAMESPACE %s=%s, where nobody is to claim GPUs but by slices", api.LabelFail, api.FailOpenForClaims)
	open := newFinding(Warning, "while gpuslice is down, GPUs can be claimed here beyond what policy allows").
		WithRemedy("delete what gpuslice audit lists of these namespaces; where %s is missing, kubectl -n %s logs deployment/gpuslice-webhook says why it is not written",
			api.AnnotationClosedClasses, f.System)
	snapshot, scope, made := f.snapshot(), installed.ScopeOf(f.Mutating, f.System), f.claimsByNamespace()
	for _, ns := range f.Namespaces {
		fails := ns.Labels[api.LabelFail]
		if !scope.Includes(ns.Name, ns.Labels) || ns.Labels[api.LabelBypass] == "true" || fails == api.FailOpen || ns.DeletionTimestamp != nil {
			continue
		}
		in := snapshot.Input(api.Namespace{Name: ns.Name, Labels: ns.Labels})
		classes := in.GPUClaims().DeviceClasses
		if in.Policy.Off() {
			classes = f.DeviceClaims.GPUClaims(ns.Name, &corev1.Pod{}).DeviceClasses
		}
		others, gpus := countClaims(classes, made[ns.Name])
		switch {
		case fails != api.FailOpenForClaims && others > 0:
			denied = denied.With(object("namespace", "", ns.Name), "", fmt.Sprintf("%d claims and templates of other devices", others))
		case fails != api.FailOpenForClaims || in.Policy.Off():
		case ns.Annotations[api.AnnotationClosedClasses] != classes.Closed(in.Namespace):
			open = open.With(object("namespace", "", ns.Name), "metadata.annotations["+api.AnnotationClosedClasses+"]",
				"not "+classes.Closed(in.Namespace))
		case gpus > 0:
			open = open.With(object("namespace", "", ns.Name), "", fmt.Sprintf("%d claims and templates of GPUs from before", gpus))
		}
	}
	return withEvidence(open, denied)
}

// countClaims returns how many claims and templates are of no GPU, and how many of GPUs are no slices. Those that monitor GPUs are
// neither: they allocate none.
func countClaims(classes accounting.DeviceClasses, specs []*resourcev1.ResourceClaimSpec) (others, gpus int) {
	for _, spec := range specs {
		switch {
		case claims.IsSlice(spec):
		case classes.ClaimProblem("", withoutAdminAccess(spec)) == "":
			others++
		case classes.ClaimProblem("", spec) != "":
			gpus++
		}
	}
	return others, gpus
}

// withoutAdminAccess is the spec if it requested devices for itself.
func withoutAdminAccess(spec *resourcev1.ResourceClaimSpec) *resourcev1.ResourceClaimSpec {
	out := spec.DeepCopy()
	for _, r := range out.Devices.Requests {
		if r.Exactly != nil {
			r.Exactly.AdminAccess = nil
		}
	}
	return out
}

// unnameable are the names of claims that no further pod may name while gpuslice is down (deploy/50-webhooks.yaml).
var unnameable = regexp.MustCompile("-(gpuslice|extended-resources-)|^.{60}")

// claimsByNamespace are the specs of templates, and of claims that pods may name.
func (f *Facts) claimsByNamespace() map[string][]*resourcev1.ResourceClaimSpec {
	out := map[string][]*resourcev1.ResourceClaimSpec{}
	add := func(all map[string]*resourcev1.ResourceClaimSpec, named func(name string) bool) {
		for key, spec := range all {
			if namespace, name, _ := strings.Cut(key, "/"); named(name) {
				out[namespace] = append(out[namespace], spec)
			}
		}
	}
	add(f.DeviceClaims.Claims, func(name string) bool { return !unnameable.MatchString(name) })
	add(f.DeviceClaims.Templates, func(string) bool { return true })
	return out
}

// claimed reads claims and templates, if there is a class of devices.
func (g *gatherer) claimed() (err error) {
	if len(g.facts.Classes) > 0 {
		g.facts.DeviceClaims, err = installed.Claims(g.ctx, g.client, "")
	}
	return err
}
