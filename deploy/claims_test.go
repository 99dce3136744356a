package deploy_test

import (
	"regexp"
	"testing"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies/claims"
)

// TestClaimPatterns holds the admission policy's spellings of a template's name and of a MIG profile against those of the webhook.
func TestClaimPatterns(t *testing.T) {
	text, err := deploy.Files.ReadFile("58-claims.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pattern := func(within string) *regexp.Regexp {
		found := regexp.MustCompile(within).FindSubmatch(text)
		if found == nil {
			t.Fatalf("58-claims.yaml has no %s", within)
		}
		return regexp.MustCompile("^" + string(found[1]) + "$")
	}
	name, profile := pattern(`metadata\.name\.matches\('\^([^']+)\$'\)`), pattern(`profile == '([^']+)'\$"`)
	for _, p := range []string{"1g.10gb", "7g.80gb", "9g.999gb", "1g.1000gb", "0g.10gb", "1g.010gb", "1g.10gb.me",
		"1g.10gb+me", "1c.2g.10gb", "1gx10gb", "10g.10gb", ""} {
		takes := claims.Takes(p)
		if profile.MatchString(p) != takes || name.MatchString("gpuslice-"+p+"-or-4396mi") != takes {
			t.Errorf("%q: a claim takes it: %v; the admission policy: %v, in a name: %v", p, takes,
				profile.MatchString(p), name.MatchString("gpuslice-"+p+"-or-4396mi"))
		}
	}
	for _, n := range []string{"gpuslice-4396mi", "gpuslice-1g.10gb-or-4396mi-share", "gpuslice-2x20480mi-of-81920mi",
		"gpuslice-1mi-from-memory.example.com", "gpuslice-04396mi", "gpuslice-4396mi-shares", "gpuslice-0x1mi"} {
		if _, err := claims.Parse(n); (err == nil) != name.MatchString(n) {
			t.Errorf("%s: %v; the admission policy matches it: %v", n, err, name.MatchString(n))
		}
	}
}
