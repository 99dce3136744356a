package cli

import "testing"

func TestOneLine(t *testing.T) {
	if got := OneLine("a\x1b[2Jb\tc\nd"); got != "a [2Jb c d" {
		t.Errorf("%q", got)
	}
}

func TestFirst(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a, b": {"a", "b"}, "a, b and 2 more": {"a", "b", "c", "d"}} {
		if got := First(2, names); got != want {
			t.Errorf("%q: got %q, want %q", names, got, want)
		}
	}
}
