package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/freememory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/installed"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/claims"
)

// checkOpenClasses looks for policies with a quota or slices by claim under which pods may claim GPUs otherwise, and for clusters
// whose claims gpuslice does not read.
func checkOpenClasses(f *Facts) []Finding {
	if slices.Contains(f.Groups, "resource.k8s.io") && !slices.Contains(f.Groups, resourcev1.SchemeGroupVersion.String()) {
		return []Finding{newFinding(Warning, "gpuslice counts no claims of GPUs: it reads them by resource.k8s.io/v1, which the API server does not serve").
			With("apigroup/resource.k8s.io", "", "").
			WithRemedy("serve resource.k8s.io/v1 (Kubernetes 1.34 does by default), or have the API server deny claims of GPUs: chart value claims.deviceClasses")}
	}
	found := newFinding(Warning, "pods may claim GPUs beside a quota or slices by claim: a claim that is exchanged after its pod was admitted counts late").
		WithRemedy("leave out claims: count in the policy, and nobody claims GPUs there but by slices")
	for _, g := range f.Governed() {
		if open := g.Input.GPUClaims().Open(); open != "" && g.Input.Namespace.Labels[api.LabelFail] != api.FailOpenForClaims {
			found = found.With(object("namespace", "", g.Name), "policy "+g.Input.Policy.Name+", open classes", open)
		}
	}
	return withEvidence(found)
}

// checkOutageClaims looks for namespaces whose claims of other devices are denied while gpuslice is down, and for those where that is
// not so and GPUs can be claimed as well.
func checkOutageClaims(f *Facts) []Finding {
	denied := newFinding(Note, "while gpuslice is down, pods with claims are denied here, also of other devices than GPUs").
		WithRemedy("kubectl label namespace NAMESPACE %s=%s, where nobody is to claim GPUs but by slices", api.LabelFail, api.FailOpenForClaims)
	open := newFinding(Warning, "while gpuslice is down, GPUs can be claimed here beyond what policy allows").
		WithRemedy("delete what gpuslice audit lists of these namespaces; where %s is missing, kubectl -n %s logs deployment/gpuslice-webhook says why it is not written", api.AnnotationClosedClasses, f.System)
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
			open = open.With(object("namespace", "", ns.Name), "metadata.annotations["+api.AnnotationClosedClasses+"]", "not "+classes.Closed(in.Namespace))
		case gpus > 0:
			open = open.With(object("namespace", "", ns.Name), "", fmt.Sprintf("%d claims and templates of GPUs from before", gpus))
		}
	}
	return withEvidence(open, denied)
}

// countClaims returns how many claims and templates are of no GPU, and how many of GPUs are no slices.
func countClaims(classes accounting.DeviceClasses, specs []*resourcev1.ResourceClaimSpec) (others, gpus int) {
	for _, spec := range specs {
		switch {
		case claims.IsSlice(spec):
		case classes.ClaimProblem("", spec) == "":
			others++
		default:
			gpus++
		}
	}
	return others, gpus
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

// trialTemplate is written on trial: its request is an amount of memory of a shared device.
const trialTemplate = "gpuslice-1mi"

// checkClaimAmounts looks whether the API server keeps the amounts of claims.
func checkClaimAmounts(f *Facts) []Finding {
	if f.Amounts == "" {
		return nil
	}
	return []Finding{newFinding(Warning, "the API server does not take claims of an amount of a device (strategy claim): %s", f.Amounts).
		WithRemedy("enable the feature gate DRAConsumableCapacity in API server, scheduler, controller manager and kubelets, or use Kubernetes 1.36, where it is on by default").
		With("resourceclaimtemplate/"+f.System+"/"+trialTemplate, "spec.spec.devices.requests[gpu].exactly.capacity", "dry run")}
}

// checkWaitingClaims adds up the free memory of each device, if pods wait for more than any has.
func checkWaitingClaims(f *Facts) []Finding {
	free := freememory.Of(f.Slices, f.Claims)
	found := newFinding(Note, "pods wait for more memory of one device than is free of any; free: %s", free).
		WithRemedy("wait until pods on a device end, delete some, or request less; gpuslice explain POD shows one pod")
	allocated := allocatedClaims(f.Claims)
	for _, p := range f.WaitingPods {
		if hasClaim(p, allocated) {
			continue
		}
		for _, t := range claims.Named(p) {
			if requested := freememory.Requested(t); requested > free.Largest() {
				found = found.With(object("pod", p.Namespace, p.Name), "spec.resourceClaims", requested.Human()+" of a device requested")
			}
		}
	}
	return withEvidence(found)
}

// allocatedClaims are the claims that were given a device.
func allocatedClaims(claims []resourcev1.ResourceClaim) map[types.NamespacedName]bool {
	out := map[types.NamespacedName]bool{}
	for _, c := range claims {
		out[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] = c.Status.Allocation != nil
	}
	return out
}

// hasClaim reports whether each claim of a pod's templates has a device: only its binding to a node is left.
func hasClaim(p *corev1.Pod, allocated map[types.NamespacedName]bool) bool {
	missing := 0
	for _, c := range p.Spec.ResourceClaims {
		if c.ResourceClaimTemplateName != nil {
			missing++
		}
	}
	for _, s := range p.Status.ResourceClaimStatuses {
		if s.ResourceClaimName != nil && allocated[types.NamespacedName{Namespace: p.Namespace, Name: *s.ResourceClaimName}] {
			missing--
		}
	}
	return missing == 0
}
