package reports

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReportOf: a report of any namespace fits into one object, and keeps what is denied.
func TestReportOf(t *testing.T) {
	t.Parallel()
	var subjects []Subject
	for i := range 3000 {
		subjects = append(subjects,
			Subject{"Pod", fmt.Sprint("p-", i), []string{passed, failed, skipped}[i%3], "quota", strings.Repeat("🙂", 4000)})
	}
	subjects = append(subjects, Subject{Kind: "Deployment", Name: "d", Result: erred, Message: "it has no template"})
	r := Of("team-a", "gpuslice-system/team-a", subjects, time.Unix(1e9, 0))
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if most := 1500 << 10; len(text) > most {
		t.Errorf("a report has %d bytes, at most %d may be stored", len(text), most)
	}
	if diff := cmp.Diff(map[string]int{passed: 1000, failed: 1000, skipped: 1000, warned: 0, erred: 1}, r.Summary); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(r.Results) != maxResults {
		t.Errorf("%d results", len(r.Results))
	}
	for _, result := range r.Results {
		if result.Result != failed {
			t.Fatalf("%s takes the place of one that is denied", result.Result)
		}
	}
}
