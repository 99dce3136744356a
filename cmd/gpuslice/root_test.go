package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/program"
	"github.com/gpuslice/gpuslice/test/commandline"
)

// answered runs a command line that reads no file.
func answered(name string, args ...string) (code int, out, errs string) {
	var stdout, stderr bytes.Buffer
	code = program.Run(context.Background(), append([]string{name}, args...), commandline.StreamsTo(&stdout, &stderr))
	return code, stdout.String(), stderr.String()
}

func TestVersion(t *testing.T) {
	if code, out, _ := answered("gpuslice", "--version"); code != 0 || out != "gpuslice v0.0.0-test\n" {
		t.Errorf("exit %d, %q", code, out)
	}
}

func TestPluginName(t *testing.T) {
	code, out, _ := answered("/usr/local/bin/kubectl-gpuslice", "render", "--help")
	if code != 0 || !strings.Contains(out, "kubectl gpuslice render -f FILE") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// TestArguments: commands take no arguments unless they say so.
func TestArguments(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"policy lint none.yaml", "none.yaml"},
		{"doctor extra", "unexpected argument \"extra\": name files with -f"},
		{"policy init extra", "unexpected argument \"extra\" ("},
	} {
		if code, _, errs := answered("gpuslice", strings.Fields(c.args)...); code != cli.ExitNoAnswer || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d, %q", c.args, code, errs)
		}
	}
}

// TestFormats: every command that prints in a format denies one that it does not have, whatever else it checks.
func TestFormats(t *testing.T) {
	var commands []*cobra.Command
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if output := c.Flags().Lookup("output"); output != nil && strings.HasPrefix(output.Usage, "`FORMAT`") {
			commands = append(commands, c)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(program.New("gpuslice", commandline.StreamsTo(&bytes.Buffer{}, &bytes.Buffer{})))
	if len(commands) < 10 {
		t.Errorf("%d commands print in a format", len(commands))
	}
	for _, c := range commands {
		args := append(strings.Fields(c.CommandPath()), "-o", "other")
		if code, _, errs := answered(args[0], args[1:]...); code != cli.ExitNoAnswer || !strings.Contains(errs, `-o "other": accepted: `) {
			t.Errorf("%s: exit %d, %q", c.CommandPath(), code, errs)
		}
	}
}

func TestCompletion(t *testing.T) {
	if code, out, _ := answered("gpuslice", "completion", "bash"); code != 0 || !strings.Contains(out, "__start_gpuslice") {
		t.Errorf("exit %d, %d bytes", code, len(out))
	}
}

// TestHelp: the help of a command has its call, examples, its JSON, and a pointer to the one list of exit codes.
func TestHelp(t *testing.T) {
	for _, path := range [][]string{{"render"}, {"explain"}, {"list"}, {"translate"}, {"policy", "lint"},
		{"policy", "show"}, {"policy", "test"}, {"pools"}, {"quota"}, {"audit"}, {"bypass"}, {"doctor"}, {"verify"}} {
		t.Run(strings.Join(path, " "), func(t *testing.T) {
			code, out, _ := answered("gpuslice", append(path, "--help")...)
			if code != 0 {
				t.Errorf("exit %d", code)
			}
			for _, part := range []string{"Examples:\n  ", program.SeeExitCodes + "\n",
				"gpuslice " + strings.Join(path, " "), `"apiVersion": "gpuslice.dev/v1"`} {
				if !strings.Contains(out, part) {
					t.Errorf("help lacks %q:\n%s", part, out)
				}
			}
		})
	}
}

// TestGroups: the help of all lists each command under what somebody wants to do, and that of one its own flags first.
func TestGroups(t *testing.T) {
	_, out, _ := answered("gpuslice", "--help")
	for _, part := range []string{"\nSee what runs:\n", "\nTry before you apply:\n", "\nOperate:\n", "\nExamples:\n"} {
		if !strings.Contains(out, part) {
			t.Errorf("help lacks %q:\n%s", part, out)
		}
	}
	for _, c := range program.New("gpuslice", commandline.StreamsTo(&bytes.Buffer{}, &bytes.Buffer{})).Commands() {
		if c.GroupID == "" {
			t.Errorf("%s is in no group of the help", c.Name())
		}
	}
	_, out, _ = answered("gpuslice", "list", "--help")
	own, cluster, _ := strings.Cut(out, "\nCluster:\n")
	if !strings.Contains(own, "--node NODE") || strings.Contains(own, "--kubeconfig") || !strings.Contains(cluster, "--kubeconfig") ||
		strings.Contains(cluster, "--node ") || strings.Contains(out, "--token") {
		t.Errorf("the flags of list:\n%s", out)
	}
	if _, out, _ = answered("gpuslice", "estimate", "--help"); strings.Contains(out, "\nCluster:\n") {
		t.Errorf("estimate needs no cluster: its --context is a number of tokens:\n%s", out)
	}
}

// TestExitCodes: the root help lists every code, and no command lists codes of its own.
func TestExitCodes(t *testing.T) {
	root := program.New("gpuslice", commandline.StreamsTo(&bytes.Buffer{}, &bytes.Buffer{}))
	for _, code := range []int{cli.ExitDone, cli.ExitInternal, cli.ExitNoAnswer, cli.ExitDenied, cli.ExitWarned} {
		if !strings.Contains(root.Long, fmt.Sprintf("\n  %d  ", code)) {
			t.Errorf("gpuslice --help lacks exit code %d", code)
		}
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if strings.Contains(strings.ToLower(strings.ReplaceAll(sub.Long, program.SeeExitCodes, "")), "exit code") {
				t.Errorf("%s --help lists exit codes of its own", sub.CommandPath())
			}
			walk(sub)
		}
	}
	walk(root)
}
