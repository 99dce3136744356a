package commandline

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/program"
)

var (
	codeBlock = regexp.MustCompile("(?ms)^ *```([^\n]*)\n(.*?)^ *```")
	codeSpan  = regexp.MustCompile("`([^`\n]+)`")
	ofPlugin  = regexp.MustCompile(`^(bin/|kubectl )?gpuslice `)
	separator = regexp.MustCompile(`\s*(\||;|&&|#)\s+`)
)

// TestQuotedCommands looks for every `gpuslice ...` of every Markdown page, and for its flags.
func TestQuotedCommands(t *testing.T) {
	root := program.New("gpuslice", StreamsTo(&bytes.Buffer{}, &bytes.Buffer{}))
	root.InitDefaultCompletionCmd("bash")
	seen, isMessage := 0, sentences(t)
	project := os.DirFS("../..")
	err := fs.WalkDir(project, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		text, err := fs.ReadFile(project, path)
		for _, line := range quoted(string(text)) {
			if isMessage(line) {
				continue
			}
			seen++
			if err := exists(root, line); err != nil {
				t.Errorf("%s: %q: %v", path, line, err)
			}
		}
		return err
	})
	if err != nil || seen == 0 {
		t.Errorf("%d commands are quoted: %v", seen, err)
	}
	for _, bad := range []string{"gpuslice nothing", "gpuslice verify --nothing", "gpuslice policy lint -q", "gpuslice policy nothing"} {
		if exists(root, bad) == nil {
			t.Errorf("nothing is found wrong with %q", bad)
		}
	}
}

// sentences reports whether a quoted text is a message of webhook or guard, and no command: their source has it as the
// beginning of a text.
func sentences(t *testing.T) func(string) bool {
	t.Helper()
	var said strings.Builder
	for _, pattern := range []string{"../../guard/*.go", "../../webhook/*/*.go", "../../webhook/*/*/*.go", "../../policies/*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			said.Write(text)
		}
	}
	return func(line string) bool {
		words := strings.Fields(line)
		return len(words) > 1 && strings.Contains(said.String(), `"`+words[0]+" "+words[1]+" ")
	}
}

// quoted are the commands in the code of a page; blocks of text or of another language are none.
func quoted(text string) (out []string) {
	take := func(line string) {
		for _, part := range separator.Split(strings.TrimSpace(line), -1) {
			if ofPlugin.MatchString(part + " ") {
				out = append(out, strings.TrimPrefix(strings.TrimPrefix(part, "kubectl "), "bin/"))
			}
		}
	}
	for _, m := range codeBlock.FindAllStringSubmatch(text, -1) {
		if m[1] == "" || m[1] == "sh" {
			for _, line := range strings.Split(strings.ReplaceAll(m[2], "\\\n", ""), "\n") {
				take(line)
			}
		}
	}
	for _, m := range codeSpan.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		take(m[1])
	}
	return out
}

// exists returns an error if a quoted command names what the program does not have.
func exists(root *cobra.Command, line string) error {
	cmd, words := root, strings.Fields(line)[1:]
	for len(words) > 0 && cmd.HasSubCommands() && !strings.HasPrefix(words[0], "-") && words[0] != "..." {
		sub, _, err := cmd.Find(words[:1])
		if err != nil || sub == cmd {
			return fmt.Errorf("%s has no command %s", cmd.CommandPath(), words[0])
		}
		cmd, words = sub, words[1:]
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	for _, word := range words {
		word = strings.Trim(word, "[]()")
		name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		switch {
		case strings.HasPrefix(word, "--") && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil:
			return fmt.Errorf("%s has no flag --%s", cmd.CommandPath(), name)
		case strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && len(name) == 1 && cmd.Flags().ShorthandLookup(name) == nil:
			return fmt.Errorf("%s has no flag -%s", cmd.CommandPath(), name)
		}
	}
	return nil
}
