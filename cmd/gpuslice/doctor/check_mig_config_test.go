package doctor

import (
	"strings"
	"testing"
)

// TestRemedyOfLayouts: a remedy is for a shell, and a ConfigMap names its layouts as it likes.
func TestRemedyOfLayouts(t *testing.T) {
	const hostile = "version: v1\nmig-configs:\n  \"$(touch x)\": [{devices: all, mig-enabled: false}]\n"
	for layouts, want := range map[string]string{hostile: "=LAYOUT,",
		hostile + "  all-disabled: [{devices: all, mig-enabled: false}]\n": "=all-disabled,"} {
		f := facts(t, nodes("a100-mig-mixed"), label(labelMIGConfig, "missing"), withConfig(layouts))
		found := ""
		for _, finding := range checkMIGConfig(f) {
			found += finding.Remedy
		}
		if !strings.Contains(found, want) || strings.Contains(found, "touch") {
			t.Errorf("%q, want %q", found, want)
		}
	}
}
