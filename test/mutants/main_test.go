package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

func TestTry(t *testing.T) {
	const module = `
-- go.mod --
module example.com/m
go 1.26
-- p/p.go --
package p

func Sum(n int) (sum int) {
	for i := 1; i <= n; i++ {
		sum = sum + i
	}
	return sum
}
-- p/p_test.go --
package p

import "testing"

func Test(t *testing.T) {
	if Sum(1) == 0 {
		t.Error("0")
	}
}
-- q/q_test.go --
package q

import (
	"testing"

	"example.com/m/p"
)

func Test(t *testing.T) {
	if got := p.Sum(2); got != 3 {
		t.Error(got)
	}
}
-- fails/fails.go --
package fails
-- fails/fails_test.go --
package fails

import "testing"

func Test(t *testing.T) { t.Error("by itself") }
`
	t.Chdir(t.TempDir())
	if err := os.CopyFS(".", must(txtar.FS(txtar.Parse([]byte(module))))); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		folder string
		tests  []string
		want   string
	}{
		"by its own tests":         {"p", []string{"./p"}, "lived: p/p.go:5: + becomes -\n| p | 3 | 2 | 1 | 0 |\n"},
		"by those of another, too": {"p", []string{"./p", "./q"}, "| p | 3 | 3 | 0 | 0 |\n"},
		"tests that fail":          {"fails", []string{"./fails"}, "run tests without a mutant"},
	} {
		var out bytes.Buffer
		if err := (options{timeout: time.Minute, out: &out}).try(t.Context(), tc.folder, tc.tests); err != nil {
			out.WriteString(err.Error())
		}
		if !strings.HasPrefix(out.String(), tc.want) {
			t.Errorf("%s: got %s, want %s", name, &out, tc.want)
		}
	}
}

// TestChoose: two runs in parts try what one run tries.
func TestChoose(t *testing.T) {
	choose := func(most, skip int) (all []mutant) {
		return must(options{most: most, skip: skip, seed: 1}.choose("."))
	}
	whole, all := choose(10, 0), choose(0, 0)
	parts := append(choose(4, 0), choose(10, 4)...)
	slices.SortFunc(parts, func(a, b mutant) int { return slices.Index(all, a) - slices.Index(all, b) })
	if !slices.Equal(parts, whole) || len(whole) != 10 || len(all) <= 10 {
		t.Errorf("%v and in parts\n%v, of %d", whole, parts, len(all))
	}
	if got := choose(0, len(all)+1); len(got) != 0 {
		t.Errorf("after all of them: %v", got)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
