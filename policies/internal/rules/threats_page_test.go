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
	text := strings.Join(strings.Fields(string(page)), " ") // without its line breaks
	for _, r := range All {
		if !strings.Contains(text, `"`+r.Reason+`"`) {
			t.Errorf("no line names the rule %q", r.Reason)
		}
	}
}
