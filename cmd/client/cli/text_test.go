package cli

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestOneLine(t *testing.T) {
	if got := OneLine("a\x1b[2Jb\tc\nd"); got != "a [2Jb c d" {
		t.Errorf("%q", got)
	}
	if got := OneLine("Größe 8Gi\u202eiG08\u2066x\u2028y\ufeffz"); got != "Größe 8Gi iG08 x y z" {
		t.Errorf("what turns a line around, or ends it, stays: %q", got)
	}
}

func TestWithoutEscapes(t *testing.T) {
	var b strings.Builder
	if n, err := fmt.Fprint(WithoutEscapes(&b), "a\x1b[2J\tb\u009b\n\x9bc\r\n"); n != 14 ||
		err != nil || b.String() != "a [2J\tb \n\ufffdc \n" {
		t.Errorf("%d, %v: %q", n, err, b.String())
	}
}

func TestLine(t *testing.T) {
	var b strings.Builder
	page := Page{}
	page.Linef("a %s", "\x1b[2Jb\nc")
	page.PaintedLine(paint, Red, "d\x1b[2J", "e\x1b[2J")
	if err := page.Print(&b); err != nil || b.String() != "a  [2Jb c\n\x1b[31md [2J\x1b[0me [2J\n" {
		t.Errorf("%v: %q", err, b.String())
	}
}

func TestFirst(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a, b": {"a", "b"}, "a, b and 2 more": {"a", "b", "c", "d"}} {
		if got := First(2, names); got != want {
			t.Errorf("%q: got %q, want %q", names, got, want)
		}
	}
}

// TestFormulas: a spreadsheet takes no cell for a formula, and numbers, JSON and words stay as they are.
func TestFormulas(t *testing.T) {
	kept := []string{"", "-5", "-1.5", "+2", "1e-7", "{\"a\":\"=1\"}", "(other)", "a-b", "x"}
	formulas := []string{"=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1+1", "\n-1+1", " =1+1", "\u200b=1+1", "＝1+1"}
	var b strings.Builder
	if err := PrintCSV(&b, [][]string{slices.Clone(kept), slices.Clone(formulas)}); err != nil {
		t.Fatal(err)
	}
	in := csv.NewReader(strings.NewReader(b.String()))
	in.FieldsPerRecord = -1
	rows, err := in.ReadAll()
	if err != nil || len(rows) != 2 || !slices.Equal(rows[0], kept) {
		t.Fatalf("%v, %q, want %q", err, rows, kept)
	}
	for n, cell := range rows[1] {
		if cell != "'"+formulas[n] {
			t.Errorf("%q of %q", cell, formulas[n])
		}
	}
}
