package rules

import (
	"os"
	"strings"
	"testing"
)

func TestThreatsPageNamesRules(t *testing.T) {
	page, err := os.ReadFile("../../../webhook/THREATS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range All() {
		if !strings.Contains(string(page), `"`+r.Reason+`"`) {
			t.Errorf("no line names the rule %q", r.Reason)
		}
	}
}
