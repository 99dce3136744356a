package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/internal/document"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// maxQuotaParts bounds how many pools and classes one quota lists: each is a sum that every decision looks at.
const maxQuotaParts = 64

// validateQuota reports every problem of a quota: names, numbers out of range, parts that limit nothing.
func validateQuota(path *field.Path, q QuotaSpec) field.ErrorList {
	errs := validateQuotaLimits(path, q.Whole())
	if q.Budget != "" {
		errs = append(errs, quotaName(path.Child("budget"), q.Budget)...)
		if !q.Limited() {
			errs = append(errs, field.Required(path, "the budget has no limit; write memory, slices, gpus or devices, or remove budget"))
		}
	}
	errs = append(errs, validateNative(path.Child("native"), q)...)
	errs = append(errs, validateQuotaParts(path.Child("pools"), q.Pools)...)
	return append(errs, validateQuotaParts(path.Child("classes"), q.Classes)...)
}

// validateNative checks the handling of ResourceQuotas. Earlier builds also wrote one.
func validateNative(path *field.Path, q QuotaSpec) field.ErrorList {
	native := []modes.NativeMode{modes.NativeCheck, modes.NativeOff}
	switch {
	case q.Native == "write":
		return field.ErrorList{field.Invalid(path, q.Native,
			"removed; write check, and a ResourceQuota of your own where a limit has to hold while gpuslice is down")}
	case q.Native != "" && !slices.Contains(native, q.Native):
		return field.ErrorList{field.NotSupported(path, modes.NativeMode(document.Shorten(string(q.Native))), native)}
	}
	return nil
}

func validateQuotaParts(path *field.Path, parts map[string]quota.Limits) (errs field.ErrorList) {
	if len(parts) > maxQuotaParts {
		return field.ErrorList{field.TooMany(path, len(parts), maxQuotaParts)}
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		at := path.Key(name)
		errs = append(errs, quotaName(at, name)...)
		errs = append(errs, validateQuotaLimits(at, parts[name])...)
		if (parts[name] == quota.Limits{}) {
			errs = append(errs, field.Required(at, "limits nothing; write memory, slices, gpus or devices"))
		}
	}
	return errs
}

func validateQuotaLimits(path *field.Path, l quota.Limits) (errs field.ErrorList) {
	for _, d := range quota.Dimensions() {
		if most, ok := d.Limit(l); ok && (most < 0 || most > quantity.MaxCharge) {
			errs = append(errs, field.Invalid(path.Child(d.Name), most, fmt.Sprintf("accepted: 0 to %s", d.Text(quantity.MaxCharge))))
		}
	}
	return errs
}

func quotaName(path *field.Path, name string) field.ErrorList {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, name, strings.Join(problems, "; "))}
	}
	return nil
}
