package arch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// layers are the packages below policies, from the vocabulary up to the operations: each may import those of layers
// before its own, and none beside it. A new package needs a place here.
var layers = [][]string{
	{"policies/api"},
	{"policies/quota", "policies/internal/frameworks"},
	{"policies/config"},
	{"policies/pools"},
	{"policies/internal/request"},
	{"policies/promise"},
	{"policies/internal/rules"},
	{"policies/internal/plan"},
	{"policies"},
}

func TestPolicyLayers(t *testing.T) {
	for _, p := range list(t) {
		folder := strings.TrimPrefix(p.ImportPath, module+"/")
		if !within(p.ImportPath, "policies") {
			continue
		}
		for _, broken := range upward(folder, p.Imports) {
			t.Error(broken)
		}
	}
}

// maxLayersOfWebhook is how many packages of policies the webhook may know: it decodes, asks and answers.
const maxLayersOfWebhook = 6

func TestPolicyLayersOfWebhook(t *testing.T) {
	var known []string
	for _, p := range list(t) {
		for _, path := range p.Imports {
			if within(p.ImportPath, "webhook") && within(path, "policies") && !slices.Contains(known, path) {
				known = append(known, path)
			}
		}
	}
	if len(known) > maxLayersOfWebhook {
		t.Errorf("webhook imports %d packages of policies, at most %d: %q", len(known), maxLayersOfWebhook, known)
	}
}

// TestPolicyLayersUpward keeps the check itself honest.
func TestPolicyLayersUpward(t *testing.T) {
	for _, c := range []struct {
		name, folder, imports string
		broken                bool
	}{
		{"down", "policies/promise", "policies/api", false},
		{"down from the top", "policies", "policies/internal/plan", false},
		{"outside", "policies/api", "guard/limits", false},
		{"up", "policies/api", "policies/quota", true},
		{"up to the top", "policies/internal/plan", "policies", true},
		{"beside", "policies/quota", "policies/internal/frameworks", true},
		{"a package without a place", "policies/new", "policies/api", true},
		{"import of one without a place", "policies", "policies/new", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := upward(c.folder, []string{"fmt", module + "/" + c.imports}); (len(got) > 0) != c.broken {
				t.Errorf("found %q", got)
			}
		})
	}
}

// upward lists what a package imports although it may not.
func upward(folder string, imports []string) (broken []string) {
	own := layer(folder)
	if own < 0 {
		return []string{fmt.Sprintf("%s has no place among the layers of policies", folder)}
	}
	for _, path := range imports {
		other := strings.TrimPrefix(path, module+"/")
		if within(path, "policies") && (layer(other) < 0 || layer(other) >= own) {
			broken = append(broken, fmt.Sprintf("%s imports %s, which is not below it", folder, other))
		}
	}
	return broken
}

func layer(folder string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, folder) })
}
