package deploy_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/gpuslice/gpuslice/policies/translate"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// TestWordsAreReviewed: a pod with the words of another system is reviewed, unless they are selectors, which request nothing alone.
func TestWordsAreReviewed(t *testing.T) {
	t.Parallel()
	condition := every[*admissionv1.MutatingWebhookConfiguration](t)[0].Webhooks[0].MatchConditions[0].Expression
	var names, prefixes []string
	for _, m := range regexp.MustCompile(`startsWith\('([^']+)'\)`).FindAllStringSubmatch(condition, -1) {
		prefixes = append(prefixes, m[1])
	}
	for _, m := range regexp.MustCompile(`'([^']+)'`).FindAllStringSubmatch(condition, -1) {
		names = append(names, m[1])
	}
	reviewed := func(word string) bool {
		return slices.Contains(names, word) || slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(word, prefix) })
	}
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, s := range all {
		var words translate.Translation
		if _, err := words.Read(s.Pod); err != nil || len(words.Words) == 0 || slices.Equal(words.Systems, []string{"gke"}) {
			continue
		}
		read++
		if !slices.ContainsFunc(words.Words, reviewed) {
			t.Errorf("%s: the API server does not have it reviewed for %v", s.Name, words.Words)
		}
	}
	if read < 30 {
		t.Errorf("only %d scenarios have words of other systems", read)
	}
}
