package arch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// layers are the packages below a folder, from the lowest up: each may import those of layers before its own, and none
// beside it. A new package needs a place here.
type layers struct {
	root  string
	order [][]string
}

// policyLayers go from the vocabulary up to the operations.
var policyLayers = layers{"policies", [][]string{
	{
		"policies/internal/commandline",
		"policies/internal/message",
		"policies/internal/modes",
		"policies/internal/nvidia",
		"policies/internal/podspec",
		"policies/mig",
	},
	{
		"policies/internal/quantity",
		"policies/internal/shim",
	},
	{
		"policies/api",
		"policies/claims",
	},
	{
		"policies/internal/document",
		"policies/internal/frameworks",
		"policies/internal/spellings",
		"policies/quota",
	},
	{
		"policies/internal/strategies",
		"policies/promise",
	},
	{"policies/config"},
	{"policies/pools"},
	{"policies/internal/request"},
	{
		"policies/podedit",
		"policies/rawpod",
	},
	{
		"policies/accounting",
		"policies/internal/rules",
		"policies/translate",
	},
	{"policies/internal/plan"},
	{"policies"},
}}

// webhookLayers go from what everybody shares up to the handlers of pods.
var webhookLayers = layers{"webhook", [][]string{
	{
		"webhook/bounded",
		"webhook/governed",
	},
	{
		"webhook/admission/operator",
		"webhook/admission/review",
		"webhook/clock",
		"webhook/events",
		"webhook/guardaccess",
		"webhook/keys",
		"webhook/leader",
		"webhook/leader/days",
		"webhook/leader/nodelease",
		"webhook/leader/podcache",
		"webhook/leader/workload",
		"webhook/ledger",
		"webhook/nativequota",
	},
	{
		"webhook/admission/metrics",
		"webhook/leader/bypass",
		"webhook/leader/closedclasses",
		"webhook/leader/extendednames",
		"webhook/leader/nodecondition",
		"webhook/leader/quotametrics",
		"webhook/leader/usage",
	},
	{"webhook/leader/observe"},
	{
		"webhook/leader/claimtemplates",
		"webhook/leader/peaks",
	},
	{
		"webhook/admission/cluster",
		"webhook/admission/server",
	},
	{"webhook/admission/watcher"},
	{
		"webhook/admission/budgets",
		"webhook/admission/policydocs",
	},
	{
		"webhook/admission/pods",
	},
	{"webhook"},
}}

// clientLayers go from what every command shares up to what a command does with a cluster.
var clientLayers = layers{"cmd/client", [][]string{
	{"cmd/client/problem"},
	{"cmd/client/cli"},
	{
		"cmd/client/freememory",
		"cmd/client/kube",
		"cmd/client/manifest",
		"cmd/client/nvidia",
		"cmd/client/record",
	},
	{"cmd/client/installed"},
	{
		"cmd/client/budget",
		"cmd/client/clusters",
	},
	{"cmd/client/preview"},
	{"cmd/client"},
}}

// commandLayers are the commands, of which none imports another.
var commandLayers = layers{"cmd/gpuslice", [][]string{
	{
		"cmd/gpuslice/fleet/enginememory",
		"cmd/gpuslice/fleet/inventory",
		"cmd/gpuslice/fleet/price",
		"cmd/gpuslice/fleet/scrape",
		"cmd/gpuslice/fleet/sizing",
	},
	{
		"cmd/gpuslice/fleet/draw",
		"cmd/gpuslice/fleet/history",
		"cmd/gpuslice/fleet/plan/demand",
		"cmd/gpuslice/fleet/source",
	},
	{"cmd/gpuslice/fleet/plan/placement"},
	{"cmd/gpuslice/fleet/plan/layout"},
	{
		"cmd/gpuslice/fleet/plan/proposal",
		"cmd/gpuslice/fleet/plan/snapshot",
	},
	{
		"cmd/gpuslice/fleet/estimate",
		"cmd/gpuslice/fleet/page",
		"cmd/gpuslice/fleet/plan",
		"cmd/gpuslice/fleet/recommend",
		"cmd/gpuslice/fleet/report",
		"cmd/gpuslice/fleet/snapshot",
		"cmd/gpuslice/fleet/top",
	},
	{
		"cmd/gpuslice/audit",
		"cmd/gpuslice/bypass",
		"cmd/gpuslice/doctor",
		"cmd/gpuslice/explain",
		"cmd/gpuslice/fleet",
		"cmd/gpuslice/lint",
		"cmd/gpuslice/list",
		"cmd/gpuslice/policyinit",
		"cmd/gpuslice/policyshow",
		"cmd/gpuslice/policytest",
		"cmd/gpuslice/pools",
		"cmd/gpuslice/quota",
		"cmd/gpuslice/render",
		"cmd/gpuslice/resign",
		"cmd/gpuslice/translate",
		"cmd/gpuslice/uninstall",
	},
	{"cmd/gpuslice/program"},
	{"cmd/gpuslice"},
}}

func TestLayers(t *testing.T) {
	packages := list(t)
	for _, l := range []layers{policyLayers, webhookLayers, clientLayers, commandLayers} {
		t.Run(l.root, func(t *testing.T) {
			for _, p := range packages {
				if !within(p.ImportPath, l.root) {
					continue
				}
				for _, broken := range l.upward(strings.TrimPrefix(p.ImportPath, module+"/"), p.Imports) {
					t.Error(broken)
				}
			}
		})
	}
}

// maxLayersOfWebhook is how many packages of policies the webhook may know: it reads pods, asks and answers.
const maxLayersOfWebhook = 11

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

// TestLayersUpward keeps the check itself honest.
func TestLayersUpward(t *testing.T) {
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
			if got := policyLayers.upward(c.folder, []string{"fmt", module + "/" + c.imports}); (len(got) > 0) != c.broken {
				t.Errorf("found %q", got)
			}
		})
	}
}

// upward lists what a package imports although it may not.
func (l layers) upward(folder string, imports []string) (broken []string) {
	own := l.layer(folder)
	if own < 0 {
		return []string{fmt.Sprintf("%s has no place among the layers of %s", folder, l.root)}
	}
	for _, path := range imports {
		other := strings.TrimPrefix(path, module+"/")
		if within(path, l.root) && (l.layer(other) < 0 || l.layer(other) >= own) {
			broken = append(broken, fmt.Sprintf("%s imports %s, which is not below it", folder, other))
		}
	}
	return broken
}

func (l layers) layer(folder string) int {
	return slices.IndexFunc(l.order, func(beside []string) bool { return slices.Contains(beside, folder) })
}
