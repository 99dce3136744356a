package markdown_test

import (
	"testing"

	"github.com/gpuslice/gpuslice/test/markdown"
)

func TestElide(t *testing.T) {
	t.Parallel()
	b := markdown.Block{Text: "first\nnote: it shares...\nnote: no guard...\n"}
	for name, c := range map[string]struct{ text, want string }{
		"what begins alike is cut": {"first\nnote: it shares a daemon\nnote: no guard: none\n", b.Text},
		"another line stays":       {"first\nnote: it shares a daemon\nnote: other\n", "first\nnote: it shares...\nnote: other\n"},
		"a line without dots is not cut": {"first and more\nnote: it shares a daemon\nnote: no guard\n",
			"first and more\nnote: it shares...\nnote: no guard...\n"},
		"a line that is missing is missed": {"first\n", "first\n"},
		"a further line stays":             {b.Text + "note: more\n", b.Text + "note: more\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := b.Elide(c.text); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
