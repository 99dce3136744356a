package config

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/shim"
	"github.com/gpuslice/gpuslice/policies/quota"
)

func isZero(v any) bool { return reflect.ValueOf(v).IsZero() }

// documentName is how documents write a field of Policy: its json tag, or its own name where it is not part of them.
func documentName(goName string) string {
	f, _ := reflect.TypeFor[Policy]().FieldByName(goName)
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return cmp.Or(strings.Trim(name, "-"), goName)
}

// lower takes the tenant's amount where it is smaller, or where there was none.
func lower[T ~int | ~int64](t *tightening, at *field.Path, out *T, wish T) {
	switch {
	case wish == 0 || wish == *out:
	case *out != 0 && wish > *out:
		t.clamp(at, "%v is more than %v", wish, *out)
	default:
		*out = wish
	}
}

// raise takes the tenant's amount where it is larger.
func raise[T ~int | ~int64](t *tightening, at *field.Path, out *T, wish T) {
	switch {
	case wish == 0 || wish == *out:
	case wish < *out:
		t.clamp(at, "%v is less than %v", wish, *out)
	default:
		*out = wish
	}
}

func (t *tightening) limits() {
	for _, pair := range []struct {
		name      string
		out, wish *quota.Charge
	}{
		{"perContainer", &t.out.Limits.PerContainer, &t.tenant.Limits.PerContainer},
		{"perPod", &t.out.Limits.PerPod, &t.tenant.Limits.PerPod},
	} {
		at := t.at().Child(pair.name)
		lower(t, at.Child("memory"), &pair.out.Memory, pair.wish.Memory)
		lower(t, at.Child("slices"), &pair.out.Slices, pair.wish.Slices)
		lower(t, at.Child("gpus"), &pair.out.GPUs, pair.wish.GPUs)
		lower(t, at.Child("devices"), &pair.out.Devices, pair.wish.Devices)
	}
	out, wish := &t.out.Limits, &t.tenant.Limits
	lower(t, t.at().Child("memoryLimit"), &out.MemoryLimit, wish.MemoryLimit)
	lower(t, t.at().Child("maxLimitRequestRatio"), &out.MaxLimitRequestRatio, wish.MaxLimitRequestRatio)
	raise(t, t.at().Child("minMemory"), &out.MinMemory, wish.MinMemory)
}

// quota keeps the tenant's beside the authority's: a minimum of the two would apply one tenant's wish to all who share
// a budget.
func (t *tightening) quota() {
	wish := t.tenant.Quota
	if wish.Budget != "" {
		t.clamp(t.at().Child("budget"), "not for a tenant's own document")
		wish.Budget = ""
	}
	if wish.Native != "" {
		t.clamp(t.at().Child("native"), "not for a tenant's own document")
		wish.Native = ""
	}
	if wish.Limited() {
		t.out.TenantQuota = &wish
	}
}

// slice takes the tenant's slice where it is no larger than the authority's in anything. Sizes that cannot be compared
// (8Gi and a quarter) are not smaller.
func (t *tightening) slice(at *field.Path, out *SliceSpec, wish SliceSpec) {
	alike := wish.Class == out.Class && (wish.Memory == 0) == (out.Memory == 0) && wish.Fraction.Zero() == out.Fraction.Zero()
	// wish.Num/wish.Den > out.Num/out.Den, without a division that could meet a zero
	larger := wish.Memory > out.Memory || wish.Fraction.Num*out.Fraction.Den > out.Fraction.Num*wish.Fraction.Den
	switch {
	case !alike:
		t.clamp(at, "it is not of the same kind as the authority's, so that none is known to be smaller")
		return
	case larger:
		t.clamp(at, "it is larger than the authority's")
		return
	}
	out.Memory, out.Fraction = wish.Memory, wish.Fraction
	switch {
	case wish.MemoryLimit == 0:
	case wish.MemoryLimit > out.MemoryLimit: // 0: no burst
		t.clamp(at.Child("memoryLimit"), "%s is more than the authority lets it reach", wish.MemoryLimit)
	default:
		out.MemoryLimit = wish.MemoryLimit
	}
	lower(t, at.Child("compute"), &out.Compute, wish.Compute)
	lower(t, at.Child("processes"), &out.Processes, wish.Processes)
}

func (t *tightening) defaultSlice() {
	wish := t.tenant.DefaultSlice
	if wish == nil {
		return
	}
	if t.out.DefaultSlice == nil {
		t.clamp(t.at(), "the authority has none: every pod says how much it needs")
		return
	}
	merged := *t.out.DefaultSlice
	t.slice(t.at(), &merged, *wish)
	t.out.DefaultSlice = &merged
}

// classes makes classes smaller. A class that the authority does not have is ignored: it would give a size a name, and
// nothing shows whether that size is to be available.
func (t *tightening) classes() {
	if len(t.tenant.Classes) == 0 {
		return
	}
	t.out.Classes = maps.Clone(t.out.Classes)
	for _, name := range slices.Sorted(maps.Keys(t.tenant.Classes)) {
		class, ok := t.out.Classes[name]
		if !ok {
			t.clamp(t.at().Key(name), "the authority has no such class")
			continue
		}
		t.slice(t.at().Key(name), &class, t.tenant.Classes[name])
		t.out.Classes[name] = class
	}
}

// contextAllowance grows: it reduces the framework's cap.
func (t *tightening) contextAllowance() {
	wish, have := t.tenant.ContextAllowance, t.out.ContextAllowance
	switch {
	case wish == nil:
	case have != nil && *wish < *have, have == nil && *wish < defaultAllowanceSeveral:
		t.clamp(t.at(), "%s is less than what is set aside already", *wish)
	default:
		allowance := *wish
		t.out.ContextAllowance = &allowance
	}
}

// env adds variables of names that the authority does not set.
func (t *tightening) env() {
	t.out.Env = slices.Clone(t.out.Env)
	for i, v := range t.tenant.Env {
		if slices.ContainsFunc(t.out.Env, func(have envSpec) bool { return have.Name == v.Name }) {
			t.clamp(t.at().Index(i), "%s is set already", v.Name)
			continue
		}
		t.out.Env = append(t.out.Env, v)
	}
}

// frameworks lets a tenant say more of its own software, and be stricter about its arguments. It
// switches no profile off, since profiles hold a cap.
func (t *tightening) frameworks() {
	if len(t.tenant.Frameworks) == 0 {
		return
	}
	merged := map[string]frameworks.Switch{}
	maps.Copy(merged, t.out.Frameworks)
	for _, name := range slices.Sorted(maps.Keys(t.tenant.Frameworks)) {
		have, wish, at := merged[name], t.tenant.Frameworks[name], t.at().Key(name)
		if wish.Off() && !have.Off() {
			t.clamp(at.Child("enabled"), "a tenant's own document switches no profile off")
		}
		if wish.AllocConf != nil {
			t.clamp(at.Child("allocConf"), "not for a tenant's own document")
		}
		if len(wish.Images) > 0 {
			t.clamp(at.Child("images"), "not for a tenant's own document")
		}
		if wish.Strictness() > have.Strictness() {
			have.Arguments = wish.Arguments
		} else if wish.Arguments != "" && wish.Strictness() < have.Strictness() {
			t.clamp(at.Child("arguments"), "%s is laxer than %s", wish.Arguments, have.Arguments)
		}
		if order := shim.Modes(); wish.Shim != "" && slices.Index(order, wish.Shim) < slices.Index(order, have.ShimMode()) {
			t.clamp(at.Child("shim"), "%s is laxer than %s", wish.Shim, have.ShimMode())
		} else {
			have.Shim = cmp.Or(wish.Shim, have.Shim)
		}
		have.Version = cmp.Or(have.Version, wish.Version)
		merged[name] = have
	}
	t.out.Frameworks = merged
}

// ClassList names the classes that a pod may request, for people.
func (p *Policy) ClassList() string {
	names := slices.Sorted(maps.Keys(p.Classes))
	for i, n := range names {
		names[i] = strconv.Quote(n)
	}
	return strings.Join(append(names, strconv.Quote(api.ClassReplica)), ", ")
}
