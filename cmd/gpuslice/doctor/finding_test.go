package doctor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
)

func TestPrintFindings(t *testing.T) {
	one := newFinding(Note, "it is %s", "odd").With("node/a", "status.allocatable", "4")
	one.Check = "nodes"
	two := newFinding(Problem, "it is broken").WithRemedy("kubectl fix")
	two.Check = "plugin"
	for range maxEvidence + 2 {
		two = two.With("node/b", "", "")
	}
	var out strings.Builder
	if err := printFindings(&out, []Finding{one, two}, cli.Plain); err != nil {
		t.Fatal(err)
	}
	want := `problem  plugin: it is broken
           node/b
           node/b
           node/b
           node/b
           node/b
           and 2 more
         > kubectl fix
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

func TestWithCopiesEvidence(t *testing.T) {
	base := newFinding(OK, "base").With("a", "", "")
	first, second := base.With("b", "", ""), base.With("c", "", "")
	if first.Evidence[1].Object != "b" || second.Evidence[1].Object != "c" {
		t.Errorf("%v, %v", first.Evidence, second.Evidence)
	}
}
