package doctor

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/claims"
)

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

// amounts writes a template on trial, where drivers publish devices at all.
func (g *gatherer) amounts() error {
	if len(g.facts.Slices) == 0 {
		return nil
	}
	name := trialTemplate
	trial, err := claims.Parse(name)
	if err != nil {
		return fmt.Errorf("write a template on trial: %w", err)
	}
	template := trial.Object(g.facts.System)
	templates := g.client.ResourceV1().ResourceClaimTemplates(g.facts.System)
	kept, err := templates.Create(g.ctx, template, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsAlreadyExists(err) {
		kept, err = templates.Get(g.ctx, name, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsForbidden(err): // the user may only read
		return nil
	case apierrors.IsInvalid(err):
		g.facts.Amounts = "it does not know device.allowMultipleAllocations"
		return nil
	case err == nil && !keepsAmount(&kept.Spec.Spec):
		g.facts.Amounts = "it drops the amount, so that a claim takes a whole device"
	}
	return err
}

func keepsAmount(c *resourcev1.ResourceClaimSpec) bool {
	r := c.Devices.Requests
	return len(r) == 1 && r[0].Exactly != nil && r[0].Exactly.Capacity != nil && len(r[0].Exactly.Capacity.Requests) == 1
}
