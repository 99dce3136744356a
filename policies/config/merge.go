package config

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// mergeRule limits a tenant's own document in one field of the authority's policy.
type mergeRule string

// The rules. Whatever the rule, the result never allows more than the authority's policy does.
const (
	mergeAuthority    mergeRule = "not for tenants" // a tenant's value is clamped away
	mergeIdentity     mergeRule = "identity"        // identifies the document; nothing to merge
	mergeStrictest    mergeRule = "strictest"       // of two words with an order, the stricter
	mergeIntersection mergeRule = "intersection"    // the common elements, in the tenant's order
	mergeMinimum      mergeRule = "minimum"         // the smaller of two amounts; no amount is no limit
	mergeMaximum      mergeRule = "maximum"         // the larger, where larger is stricter
	mergeBeside       mergeRule = "beside"          // both hold: the tenant's for its namespace alone
	mergeOwn          mergeRule = "own"             // the tenant's, if the authority's is empty: it limits nobody
)

// ignored is a wish of a tenant's document that went further than it may: Tighten did not follow it.
type ignored struct {
	Path string // of the field in the tenant's document
	Why  string // the tenant's wish and the effective value
}

func (c ignored) String() string { return c.Path + ": " + c.Why }

// mergeRow is the rule for one field of Policy, and the function that follows it: it changes out, which began as the
// authority's policy, to the result with the tenant's.
type mergeRow struct {
	field string // of Policy
	rule  mergeRule
	merge func(t *tightening)
}

// mergeTable has a row for every field of Policy, in their order.
func mergeTable() []mergeRow {
	return []mergeRow{
		{"APIVersion", mergeIdentity, nil},
		{"Kind", mergeIdentity, nil},
		{"Name", mergeIdentity, nil},
		{"Namespaces", mergeAuthority, notForTenants(func(p *Policy) bool { return p.Namespaces != nil })},
		{"Mode", mergeStrictest, (*tightening).mode},
		{"EnforcementMode", mergeStrictest, func(t *tightening) {
			stricter(t, &t.out.EnforcementMode, t.tenant.EnforcementMode, enforcementModes())
		}},
		{"Strategies", mergeIntersection, func(t *tightening) { common(t, &t.out.Strategies, t.tenant.Strategies) }},
		{"DefaultSlice", mergeMinimum, (*tightening).defaultSlice},
		{"Classes", mergeMinimum, (*tightening).classes},
		{"Limits", mergeMinimum, (*tightening).limits},
		{"Quota", mergeBeside, (*tightening).quota},
		{"TenantQuota", mergeIdentity, nil},
		{"Accept", mergeIntersection, func(t *tightening) { common(t, &t.out.Accept, t.tenant.Accept) }},
		{"MemoryUnits", mergeAuthority, notForTenants(func(p *Policy) bool { return len(p.MemoryUnits) > 0 })},
		{"OptOut", mergeAuthority, notForTenants(func(p *Policy) bool { return p.OptOut })},
		{"MinimumEnforcement", mergeStrictest, func(t *tightening) {
			stricter(t, &t.out.MinimumEnforcement.Tier, t.tenant.MinimumEnforcement.Tier, api.Tiers())
		}},
		{"Frameworks", mergeStrictest, (*tightening).frameworks},
		{"DefaultFramework", mergeOwn, func(t *tightening) { own(t, &t.out.DefaultFramework, t.tenant.DefaultFramework) }},
		{"ContextAllowance", mergeMaximum, (*tightening).contextAllowance},
		{"Env", mergeOwn, (*tightening).env},
		{"Pools", mergeAuthority, notForTenants(func(p *Policy) bool { return !isZero(p.Pools) })},
		{"MPS", mergeAuthority, notForTenants(func(p *Policy) bool { return !isZero(p.MPS) })},
		{"MIG", mergeAuthority, notForTenants(func(p *Policy) bool { return !isZero(p.MIG) })},
		{"Guard", mergeAuthority, notForTenants(func(p *Policy) bool { return !isZero(p.Guard) })},
		{"Idle", mergeAuthority, notForTenants(func(p *Policy) bool { return !isZero(p.Idle) })},
		{"Pod", mergeAuthority, notForTenants(func(p *Policy) bool { return !isZero(p.Pod) })},
		{"Templates", mergeAuthority, notForTenants(func(p *Policy) bool { return p.Templates != "" })},
		{"Claims", mergeStrictest, func(t *tightening) { stricter(t, &t.out.Claims, t.tenant.Claims, modes.AllClaims()) }},
		{"DeviceClasses", mergeAuthority, notForTenants(func(p *Policy) bool { return len(p.DeviceClasses) > 0 })},
	}
}

// TightenedBy joins the names of the authority's policy and of the tenant's document in the name of their result.
const TightenedBy = " tightened by "

// tighten returns the effective policy where a tenant's own document applies, and the tenant's settings that it did not
// follow. The tenant's document has no defaults: a zero field is not set. Neither is changed; without a tenant's
// document the authority's policy is returned as it is.
func tighten(authority, tenant *Policy) (*Policy, []ignored) {
	if tenant == nil {
		return authority, nil
	}
	out := *authority
	if tenant.Name != "" {
		out.Name = authority.Name + TightenedBy + tenant.Name
	}
	t := &tightening{authority: authority, tenant: tenant, out: &out}
	for _, row := range mergeTable() {
		if row.merge != nil {
			t.field = documentName(row.field)
			row.merge(t)
		}
	}
	return t.out, t.clamped
}

// TightenErrors are the settings of a tenant's document that it may not have, as problems for those who can still
// correct it.
func (p *Policy) TightenErrors(tenant *Policy) (problems []error) {
	_, clamped := tighten(p, tenant)
	for _, c := range clamped {
		problems = append(problems, fmt.Errorf("%s (policy %s; a tenant's own document only tightens)", c, p.Name))
	}
	return problems
}

// TightenWarnings are a tenant's settings without effect, since the policy's own limit is reached first.
func (p *Policy) TightenWarnings(tenant *Policy) (warnings []string) {
	whole, wish := p.Quota.Whole(), tenant.Quota.Whole()
	for _, d := range quota.Dimensions() {
		most, limited := d.Limit(whole)
		if n, wished := d.Limit(wish); limited && wished && n > most {
			warnings = append(warnings,
				fmt.Sprintf("quota.%s has no effect: it is more than that of policy %s, which holds beside it", d.Name, p.Name))
		}
	}
	return warnings
}

// tightening is one run of Tighten. All that it writes into out is new: slices and maps of the authority stay
// untouched.
type tightening struct {
	authority, tenant, out *Policy
	field                  string // that is merged now, as documents write it
	clamped                []ignored
}

func (t *tightening) clamp(path *field.Path, format string, args ...any) {
	t.clamped = append(t.clamped, ignored{Path: path.String(), Why: fmt.Sprintf(format, args...)})
}

func (t *tightening) at() *field.Path { return field.NewPath(t.field) }

// notForTenants clamps a field that a tenant's document sets.
func notForTenants(said func(*Policy) bool) func(*tightening) {
	return func(t *tightening) {
		if said(t.tenant) {
			t.clamp(t.at(), "not for a tenant's own document")
		}
	}
}

// stricter takes the tenant's word where it comes later in order, which runs from lax to strict.
func stricter[T ~string](t *tightening, out *T, wish T, order []T) {
	if wish == "" || wish == *out {
		return
	}
	if slices.Index(order, wish) < slices.Index(order, *out) {
		t.clamp(t.at(), "%s is laxer than %s", wish, *out)
		return
	}
	*out = wish
}

// mode takes the stricter mode, but off stays off: whoever runs the cluster must be able to end it everywhere.
func (t *tightening) mode() {
	if t.out.Mode == modes.Off && t.tenant.Mode != "" && t.tenant.Mode != modes.Off {
		t.clamp(t.at(), "the policy is off, and a tenant's own document does not switch it on")
		return
	}
	stricter(t, &t.out.Mode, t.tenant.Mode, modes.All())
}

// common takes the elements of both lists, in the tenant's order.
func common[T ~string](t *tightening, out *[]T, wish []T) {
	if len(wish) == 0 {
		return
	}
	var both []T
	for i, w := range wish {
		if !slices.Contains(*out, w) {
			t.clamp(t.at().Index(i), "%s is not among %s", w, message.JoinNames(*out))
			continue
		}
		both = append(both, w)
	}
	if len(both) > 0 {
		*out = both
	}
}

// own takes the tenant's value where the authority has none.
func own[T comparable](t *tightening, out *T, wish T) {
	var none T
	switch {
	case wish == none || wish == *out:
	case *out != none:
		t.clamp(t.at(), "%v is set already", *out)
	default:
		*out = wish
	}
}
