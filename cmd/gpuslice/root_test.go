package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// answered runs a command line that reads no file.
func answered(program string, args ...string) (code int, out, errs string) {
	var stdout, stderr bytes.Buffer
	code = run(context.Background(), append([]string{program}, args...), streams{in: strings.NewReader(""), out: &stdout, err: &stderr, getenv: noEnvironment})
	return code, stdout.String(), stderr.String()
}

func TestVersionIsSaidInBothWays(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--version"}} {
		if code, out, _ := answered("gpuslice", args...); code != 0 || out != "gpuslice "+buildVersion()+"\n" {
			t.Errorf("%v: exit %d, %q", args, code, out)
		}
	}
}

func TestAsAPluginItIsCalledByKubectl(t *testing.T) {
	code, out, _ := answered("/usr/local/bin/kubectl-gpuslice", "render", "--help")
	if code != 0 || !strings.Contains(out, "kubectl gpuslice render -f FILE") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

func TestCompletionIsThere(t *testing.T) {
	if code, out, _ := answered("gpuslice", "completion", "bash"); code != 0 || !strings.Contains(out, "__start_gpuslice") {
		t.Errorf("exit %d, %d bytes", code, len(out))
	}
}

// TestEveryCommandExplainsItself: help says how it is called, by example, and what the exit code means.
func TestEveryCommandExplainsItself(t *testing.T) {
	for _, path := range [][]string{{"render"}, {"explain"}, {"policy", "lint"}, {"quota"}, {"audit"}, {"bypass"}, {"doctor"}, {"verify"}} {
		t.Run(strings.Join(path, " "), func(t *testing.T) {
			code, out, _ := answered("gpuslice", append(path, "--help")...)
			if code != 0 {
				t.Errorf("exit %d", code)
			}
			for _, part := range []string{"Examples:\n  ", "Exit codes:", "gpuslice " + strings.Join(path, " "), `"apiVersion": "gpuslice.dev/v1"`} {
				if !strings.Contains(out, part) {
					t.Errorf("help lacks %q:\n%s", part, out)
				}
			}
		})
	}
}

// TestNoCommandIsForgotten: a command that is added is to be listed above.
func TestNoCommandIsForgotten(t *testing.T) {
	var names []string
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		names = append(names, c.Name())
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand("gpuslice", streams{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}, getenv: noEnvironment}))
	if got := strings.Join(names, " "); got != "gpuslice audit bypass doctor explain policy lint quota render uninstall verify version" {
		t.Errorf("commands: %s", got)
	}
}
