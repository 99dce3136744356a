package arch

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// prefixed are the files that ask whether a name begins like NVIDIA's, and why that decides nothing of GPUs there. What a GPU is,
// policies/pools.IsGPU alone decides: network cards, other systems' amounts and cards for virtual machines have such names too.
var prefixed = map[string]string{
	"cmd/gpuslice/doctor/check_limit_ranges.go":     "a LimitRange that names any resource of NVIDIA's changes pods' requests",
	"cmd/gpuslice/doctor/check_uncounted_quotas.go": "Kubernetes counts no extended resource by such a name",
	"cmd/gpuslice/doctor/offers.go":                 "saves reading pools for other names, and then asks IsGPU",
	"cmd/gpuslice/doctor/pods.go":                   "keeps what pods hold; the checks ask IsGPU",
	"cmd/gpuslice/doctor/unknown_offers.go":         "names what IsGPU does not take for a GPU",
	"cmd/gpuslice/fleet/inventory/hash.go":          "labels' keys, not resources",
	"cmd/gpuslice/fleet/source/others.go":           "notes what is named alike and is none, by IsGPU",
	"policies/accounting/classes.go":                "names of device classes that no rule for NVIDIA's names covers",
	"policies/accounting/native.go":                 "units of a ResourceQuota, whatever they are",
	"policies/accounting/resourcequota.go":          "units for ResourceQuotas, whatever they are",
	"policies/beside.go":                            "warns about what IsGPU does not take for a GPU, and may be one",
	"policies/internal/rules/deviceannotation.go":   "annotations' keys, not resources",
	"policies/internal/rules/nodename.go":           "an API group, not a resource",
	"policies/lint.go":                              "pools offer what their declaration names",
	"webhook/admission/watcher/slim.go":             "keeps names within bounds",
	"webhook/leader/podcache/fields.go":             "keeps names within bounds",
}

// TestGPUNames holds that nothing decides by the prefix of a resource's name whether it is one of GPUs.
func TestGPUNames(t *testing.T) {
	left := maps.Clone(prefixed)
	for path, file := range parseFolders(t, "../../cmd", "../../policies", "../../webhook", "../../guard") {
		path = strings.TrimPrefix(path, "../../")
		if !asksPrefix(file) {
			continue
		}
		if left[path] == "" {
			t.Errorf("%s asks for a name's prefix nvidia.com/: ask pools.IsGPU, or give a reason in prefixed", path)
		}
		delete(left, path)
	}
	for _, path := range slices.Sorted(maps.Keys(left)) {
		t.Errorf("%s asks for no prefix any more: remove it from prefixed", path)
	}
}

func TestPrefixIsFound(t *testing.T) {
	for expression, want := range map[string]bool{
		`strings.HasPrefix(name, "nvidia.com/")`:          true,
		`strings.HasPrefix(name, nvidia.ResourcePrefix)`:  true,
		`strings.CutPrefix(name, ResourcePrefix)`:         true,
		`strings.Contains(name, "nvidia.com/")`:           true,
		`strings.HasPrefix(name, "nvidia.com/mig-")`:      false,
		`strings.TrimPrefix(name, nvidia.MIGPrefix)`:      false,
		`len(nvidia.ResourcePrefix) > len("nvidia.com/")`: false,
	} {
		if got := asksPrefix(parse(t, "a.go", "package p\nvar _ = "+expression)); got != want {
			t.Errorf("%s: %t", expression, got)
		}
	}
}

// asksPrefix reports whether a file hands the prefix of NVIDIA's names to a function of package strings that looks for it.
func asksPrefix(file *ast.File) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		asks := slices.ContainsFunc([]string{"HasPrefix", "CutPrefix", "TrimPrefix", "Contains"},
			func(name string) bool { return isIdent(call.Fun, name) })
		text := ""
		found = found || asks && (isIdent(call.Args[1], "ResourcePrefix") || literal(call.Args[1], &text) && text == "nvidia.com/")
		return true
	})
	return found
}
