package finding

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheWorstStandsFirst(t *testing.T) {
	one := New(Note, "it is %s", "odd").With("node/a", "status.allocatable", "4")
	one.Check = "nodes"
	two := New(Problem, "it is broken").MendBy("kubectl mend")
	two.Check = "plugin"
	for range maxEvidence + 2 {
		two = two.With("node/b", "", "")
	}
	var out strings.Builder
	if err := Print(&out, []Finding{one, two}, nil); err != nil {
		t.Fatal(err)
	}
	want := `problem  plugin: it is broken
           node/b
           node/b
           node/b
           node/b
           node/b
           and 2 more
         > kubectl mend
note     nodes: it is odd
           node/a status.allocatable: 4
problem: 1, warning: 0, note: 1, ok: 0
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if Worst([]Finding{one}) != Note || Worst(nil) != OK || Worst([]Finding{one, two}) != Problem {
		t.Error("the worst level is another")
	}
}

func TestEvidenceIsNotShared(t *testing.T) {
	base := New(OK, "base").With("a", "", "")
	first, second := base.With("b", "", ""), base.With("c", "", "")
	if first.Evidence[1].Object != "b" || second.Evidence[1].Object != "c" {
		t.Errorf("%v, %v", first.Evidence, second.Evidence)
	}
}
