package cli

import (
	"fmt"
	"strings"
	"testing"
)

func TestOneLine(t *testing.T) {
	if got := OneLine("a\x1b[2Jb\tc\nd"); got != "a [2Jb c d" {
		t.Errorf("%q", got)
	}
}

func TestWithoutEscapes(t *testing.T) {
	var b strings.Builder
	if n, err := fmt.Fprint(WithoutEscapes(&b), "a\x1b[2J\tb\u009b\n\x9bc\r\n"); n != 14 || err != nil || b.String() != "a [2J\tb \n\ufffdc \n" {
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
