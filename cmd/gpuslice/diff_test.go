package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestADiffReadsAsDiffPrintsIt(t *testing.T) {
	before := "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\n"
	for _, c := range []struct{ name, before, after, want string }{
		{"equal texts give nothing", before, before, ""},
		{"distant changes are hunks of their own", before, strings.NewReplacer("b\n", "B\n", "m\n", "").Replace(before),
			"--- x\n+++ y\n@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n d\n e\n@@ -10,5 +10,4 @@\n j\n k\n l\n-m\n n\n"},
		{"close changes share a hunk", "a\nb\nc\n", "A\nb\nC\n", "--- x\n+++ y\n@@ -1,3 +1,3 @@\n-a\n+A\n b\n-c\n+C\n"},
		{"all is new", "", "a\nb\n", "--- x\n+++ y\n@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"all is gone", "a\n", "", "--- x\n+++ y\n@@ -1 +0,0 @@\n-a\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, unified("x", "y", c.before, c.after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEditsLeadFromOneTextToTheOther: whatever the texts, the edits give both back, and no list of edits is shorter.
func TestEditsLeadFromOneTextToTheOther(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() []string {
		out := make([]string, random.IntN(12))
		for i := range out {
			out[i] = string(rune('a' + random.IntN(3)))
		}
		return out
	}
	for range 20_000 {
		a, b := text(), text()
		edits := compare(a, b)
		if got := side(edits, '-'); !slices.Equal(got, a) {
			t.Fatalf("%v to %v: the edits begin with %v", a, b, got)
		}
		if got := side(edits, '+'); !slices.Equal(got, b) {
			t.Fatalf("%v to %v: the edits end with %v", a, b, got)
		}
		kept := len(a) + len(b) - len(edits)
		if want := longestCommon(a, b); kept != want {
			t.Fatalf("%v to %v: %d lines kept, %d could be", a, b, kept, want)
		}
	}
}

// side is the text before (op '-') or after (op '+') the edits.
func side(edits []edit, op byte) []string {
	var out []string
	for _, e := range edits {
		if e.op == ' ' || e.op == op {
			out = append(out, e.line)
		}
	}
	return out
}

// longestCommon is the length of the longest common subsequence, by the textbook's table.
func longestCommon(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

func TestColoursAreForTerminalsOnly(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("needs a pseudoterminal: %v", err)
	}
	defer terminal.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	with := func(key, value string) func(string) string {
		return func(k string) string { return map[string]string{key: value}[k] }
	}
	if !colourful(terminal, with("", "")) {
		t.Error("a terminal has colours")
	}
	if colourful(terminal, with("NO_COLOR", "1")) || colourful(terminal, with("TERM", "dumb")) {
		t.Error("the user turned colours off")
	}
	if colourful(null, with("", "")) || colourful(file, with("", "")) || colourful(&bytes.Buffer{}, with("", "")) {
		t.Error("a file has no colours")
	}
	got := coloured("--- x\n+++ y\n@@ -1 +1 @@\n-a\n+b\n c\n")
	want := "\x1b[1m--- x\x1b[0m\n\x1b[1m+++ y\x1b[0m\n\x1b[36m@@ -1 +1 @@\x1b[0m\n\x1b[31m-a\x1b[0m\n\x1b[32m+b\x1b[0m\n c\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
