package commandline

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

var serve = [][]string{{"vllm", "serve"}}

func TestGivenTo(t *testing.T) {
	t.Parallel()
	env := []corev1.EnvVar{{Name: "UTIL", Value: "0.1"}, {Name: "TWO", Value: "--a --b"},
		{Name: "LATER", ValueFrom: &corev1.EnvVarSource{}}}
	for _, tt := range []struct {
		name          string
		command, args []string
		want          string // words, opaque ones between < >; "error" where nothing is known
	}{
		{"a plain command", []string{"vllm", "serve"}, []string{"m"}, "m"},
		{"the image's entrypoint", nil, []string{"--model", "m"}, "--model m"},
		{"another program", []string{"python", "serve.py"}, []string{"--a"}, "error"},
		{"words behind a script are not the server's", []string{"sh", "-c", "vllm serve m"}, []string{"--a=1"}, "m"},
		{"unless the script passes them on", []string{"sh", "-c", `vllm serve "$@"`, "sh"}, []string{"--a=1", "--b"}, "--a=1 --b"},
		{"the first word behind a script is its name", []string{"sh", "-c", `vllm serve "$@"`}, []string{"--a=1", "--b"}, "--b"},
		{"by number", []string{"sh", "-c", `vllm serve "$1"`, "sh", "m n"}, nil, "m n"},
		{"after a shift", []string{"sh", "-c", `shift; vllm serve "$@"`, "sh", "m"}, nil, `<"$@">`},
		{"options before the script", []string{"bash", "-o", "pipefail", "-ec"}, []string{"exec vllm serve m"}, "m"},
		{"options between", []string{"sh", "-c", "-e", "vllm serve m"}, nil, "m"},
		{"a comment", []string{"sh", "-c", "vllm serve m # --a"}, nil, "m"},
		{"a redirection", []string{"sh", "-c", "vllm serve m > --a"}, nil, "m"},
		{"a here-document", []string{"sh", "-c", "cat <<E\nvllm serve x\nE\nvllm serve m"}, nil, "m"},
		{"behind an operator", []string{"sh", "-c", "vllm serve m; echo --a"}, nil, "m"},
		{"a variable of the pod", []string{"sh", "-c", "vllm serve --a $UTIL $TWO"}, nil, "--a 0.1 --a --b"},
		{"one that the script sets", []string{"sh", "-c", "UTIL=0.9; vllm serve --a $UTIL"}, nil, "--a <$UTIL>"},
		{"one of the image", []string{"sh", "-c", `vllm serve "$IMAGE"`}, nil, `<"$IMAGE">`},
		{"the kubelet's references", []string{"vllm", "serve", "$(UTIL)", "$(LATER)", "$(NONE)", "$$(UTIL)"}, nil,
			"0.1 <$(LATER)> $(NONE) $(UTIL)"},
		{"output of a command", []string{"sh", "-c", "vllm serve $(cat f)"}, nil, "<$(cat f)>"},
		{"a function", []string{"sh", "-c", "vllm() { :; }; vllm serve m"}, nil, "error"},
		{"eval", []string{"sh", "-c", `eval "$X"; vllm serve m`}, nil, "error"},
		{"two servers", []string{"sh", "-c", "vllm serve a & vllm serve b"}, nil, "error"},
		{"an open quote", []string{"sh", "-c", `vllm serve "a`}, nil, "error"},
		{"a script in a script", []string{"sh", "-c", `exec bash -c 'vllm serve m' --a`}, nil, "m"},
		{"too many scripts", []string{"sh", "-c", strings.Repeat("(", scriptLimit+1)}, nil, "error"},
		{"deep", []string{"sh", "-c", strings.Repeat("(", scriptLimit)}, nil, "error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			given, err := GivenTo(&corev1.Container{Command: tt.command, Args: tt.args, Env: env}, serve)
			var words []string
			for _, g := range given {
				if g.Opaque {
					g.Text = "<" + g.Text + ">"
				}
				words = append(words, g.Text)
			}
			got := strings.Join(words, " ")
			if err != nil {
				got = "error"
			}
			if got != tt.want {
				t.Errorf("got %s (%v), want %s", got, err, tt.want)
			}
		})
	}
}

func TestFlagIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"--x=1 --y":          "1 true false",
		"--x 1":              "1 true false",
		"--x=1 --x=2":        "2 true false",
		"--x=1 <$A>":         "1 true true",
		"<$A> --x=1":         "1 true false",
		"--x <$A>":           "$A true false",
		`--x=1 <--y="$A">`:   "1 true false",
		"--x=1 -- --x=2":     "1 true false",
		"--x-long=1 --x-l=2": " false false",
		"--y":                " false false",
	} {
		var words []Given
		for _, w := range strings.Fields(text) {
			g := Given{Text: strings.Trim(w, "<>"), Opaque: w[0] == '<'}
			g.Many = strings.HasPrefix(g.Text, "$")
			words = append(words, g)
		}
		value, found, err := FlagIn(words, "--x")
		if got := fmt.Sprint(value.Text, " ", found, " ", err != nil); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if _, _, err := FlagIn([]Given{{Text: "--gpu-memory-utilization=0.2"}, {Text: "--gpu-mem=0.9"}}, "--gpu-memory-utilization"); err == nil {
		t.Error("parsers of arguments take the beginning of a flag for the flag")
	}
}

// TestGivenToAsAShellDoes runs generated command lines with a real shell: whatever is known is what the program gets.
func TestGivenToAsAShellDoes(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server := "#!/bin/sh\nprintf 'run\\n' >>" + folder + "/out\nfor w in \"$@\"; do printf '%s\\0' \"$w\" >>" + folder + "/out; done\n"
	if err := os.WriteFile(filepath.Join(folder, "vllm"), []byte(server), 0o755); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	word := func() string {
		return pick("m", "--a=1", "--a 2", "'--a=3 x'", `"--a=$UTIL"`, "$UTIL", "$TWO", `"$TWO"`, `"$@"`, "$@", "$1", `"$0"`, `\--a`, `"\$x"`, `'a'"b"c`,
			"# c", "> o", "2>&1", "$(echo --a=9)", "`echo q`", "${UTIL}", "${NONE:-z}", "$NONE", "$((1+1))", "~", "{a,b}", "\\\n", "''", `""`, "$#", "a=b", "?", "|cat", "-- x")
	}
	known := 0
	for range 400 {
		server := "vllm serve"
		for range random.IntN(5) {
			server += " " + word()
		}
		script := pick("", "", "set -e; ", "UTIL=7; ", "shift; ", "set -- q; ", "export TWO=5\n", "if true; then ", "echo vllm serve x; ", "cat <<E >/dev/null\nvllm serve y\nE\n", "f() { :; }; ", "true && ", "IFS=.; ")
		script += pick("", "exec ", "env A=b ", "command ", "A=b ") + server
		if strings.HasPrefix(script, "if ") {
			script += "\nfi"
		}
		script += pick("", "\necho --a=5", "\n: --a=6")
		c := corev1.Container{Command: []string{"sh", pick("-c", "-ec", "-c"), script}, Env: []corev1.EnvVar{{Name: "UTIL", Value: "0.1"}, {Name: "TWO", Value: "x y"}}}
		for range random.IntN(3) {
			c.Args = append(c.Args, pick("sh", "--a=4", "p q"))
		}
		given, err := GivenTo(&c, serve)
		if err != nil || slices.ContainsFunc(given, func(g Given) bool { return g.Opaque }) {
			continue
		}
		known++
		run := exec.Command(c.Command[0], slices.Concat(c.Command[1:], c.Args)...)
		run.Dir, run.Env = t.TempDir(), []string{"PATH=" + folder + ":/usr/bin:/bin", "UTIL=0.1", "TWO=x y"}
		_ = os.Remove(folder + "/out")
		if said, err := run.CombinedOutput(); err != nil {
			t.Logf("%q: %v %s", script, err, said)
		}
		got, err := os.ReadFile(folder + "/out")
		if err != nil {
			continue // the shell ended before the server ran
		}
		want := "run\nserve\x00"
		for _, g := range given {
			want += g.Text + "\x00"
		}
		if string(got) != want {
			t.Errorf("%q %q: the program got %q, and %q was expected", script, c.Args, got, want)
		}
	}
	if known < 40 {
		t.Errorf("%d command lines of 400 are known", known)
	}
}

// FuzzGivenTo: no script ends the program that reads it.
func FuzzGivenTo(f *testing.F) {
	for _, script := range []string{`vllm serve "$@"`, `exec vllm serve ${M:-m} --a=$((1+1))`, "for i in a; do vllm serve $i; done", "vllm() { :; }",
		"case $X in a) vllm serve;; esac <<E\n$Y\nE"} {
		f.Add("sh", script, "--a")
	}
	f.Fuzz(func(t *testing.T, shell, script, word string) {
		c := &corev1.Container{Command: []string{shell, "-c", script, "sh", word}, Env: []corev1.EnvVar{{Name: "X", Value: word}}}
		if given, err := GivenTo(c, serve); err != nil && given != nil {
			t.Errorf("%v, and %v", given, err)
		}
	})
}
