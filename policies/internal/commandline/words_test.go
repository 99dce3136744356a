package commandline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	t.Run("are what the shell would run", func(t *testing.T) {
		t.Parallel()
		tests := []struct {
			name          string
			command, args []string
			want          string // words, "^" before one where a command may begin
		}{
			{"a plain command", []string{"vllm", "serve"}, []string{"m"}, "^vllm serve m"},
			{"arguments alone", nil, []string{"--model", "m n"}, "^--model m n"},
			{"an init leads on", []string{"/usr/bin/tini", "--", "env", "A=b", "torchrun"}, nil, "^/usr/bin/tini ^-- ^env ^A=b ^torchrun"},
			{"operators begin a command", []string{"sh", "-c", "a;b&&c|d\ne & (f)"}, nil, "^sh -c ^a ^b ^c ^d ^e ^f"},
			{"quotes hold together", []string{"sh", "-ec", `a "b c" 'd "e' f\ g`}, nil, "^sh -ec ^a b c d \"e f g"},
			{"a line goes on behind a backslash", []string{"sh", "-c"}, []string{"a \\\n b"}, "^sh -c ^a b"},
			{"references stay whole", []string{"sh", "-c", "a $(B) ${C} $(d e)"}, nil, "^sh -c ^a $(B) ${C} $ ^d e"},
			{"an open quote ends with the text", []string{"sh", "-c", `a "b`}, nil, "^sh -c ^a b"},
			{"braces in a word are text", []string{"sh", "-c", `a {"b":1}`}, nil, "^sh -c ^a {b:1}"},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				var got []string
				for _, w := range Split(&corev1.Container{Command: tt.command, Args: tt.args}) {
					if w.Start {
						w.Text = "^" + w.Text
					}
					got = append(got, w.Text)
				}
				if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
					t.Errorf("words (-want +got):\n%s", diff)
				}
			})
		}
	})
	t.Run("are bounded", func(t *testing.T) {
		t.Parallel()
		c := &corev1.Container{Args: []string{strings.Repeat("a", wordsLimit-1), "b", "vllm"}}
		if got := len(Split(c)); got != 2 {
			t.Errorf("got %d words, want the two that lie within the bound", got)
		}
	})
}
