// Package commandline runs command lines of gpuslice as a user does, on files and on a cluster whose API server is memory.
package commandline

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/program"
)

// Cases are the *.txtar of a folder. A case has a sentence, args, perhaps stdin, its files, and what is wanted. It runs in a folder
// that holds its files beside those of Shared/cluster. With a section live, nodes.yaml, Shared/live and the case's folder live
// are the current cluster. Its user may not list what forbidden names. Files below metrics are what ports of pods serve.
type Cases struct {
	Folder, Shared string
	Update         bool // rewrite what is wanted
}

// Run runs the cases.
func (c Cases) Run(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(c.Folder, "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no case found: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { c.run(t, name) })
	}
}

func (c Cases) run(t *testing.T, name string) {
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(bytes.TrimSpace(archive.Comment)) == 0 {
		t.Fatal("the case begins with no sentence that says what it is about")
	}
	name, err = filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := filepath.Abs(c.Shared)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(shared, "cluster"))); err != nil {
		t.Fatal(err)
	}
	sections, metrics := map[string]string{}, map[string]string{}
	for _, f := range archive.Files {
		if slices.Contains([]string{"args", "stdin", "live", "forbidden", "want/exit", "want/stdout", "want/stderr"}, f.Name) {
			sections[f.Name] = string(f.Data)
			continue
		}
		if port, ok := strings.CutPrefix(f.Name, "metrics/"); ok {
			metrics[port] = string(f.Data)
			continue
		}
		Write(t, filepath.Join(folder, f.Name), f.Data)
	}
	if sections["args"] == "" {
		t.Fatal("the case has no args")
	}
	t.Chdir(folder)
	if _, live := sections["live"]; live {
		Serve(t, World{Folders: []string{filepath.Join(shared, "live"), "live"},
			Nodes: "nodes.yaml", Forbidden: strings.Fields(sections["forbidden"]), Metrics: metrics})
	}
	got := outcome(sections["args"], sections["stdin"])
	if c.Update {
		rewrite(t, name, archive, got)
		return
	}
	want := map[string]string{}
	for _, section := range []string{"want/exit", "want/stdout", "want/stderr"} {
		want[section] = sections[section]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got, go test -update rewrites what is wanted):\n%s", archive.Comment, diff)
	}
}

// outcome runs one command line. Arguments are separated by blanks.
func outcome(args, stdin string) map[string]string {
	var out, errs bytes.Buffer
	code := program.Run(context.Background(), append([]string{"gpuslice"}, strings.Fields(args)...),
		cli.Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs, Getenv: noEnvironment, Now: Now, Version: "v0.0.0-test"})
	return map[string]string{"want/exit": fmt.Sprintln(code), "want/stdout": Steady(out.String()), "want/stderr": Steady(errs.String())}
}

// Main runs the tests of a package without the cluster of whoever runs them.
func Main(m *testing.M) {
	for name, value := range map[string]string{"KUBECONFIG": "/nowhere", "KUBERNETES_SERVICE_HOST": ""} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// Now is when the tests run the commands.
func Now() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

func noEnvironment(string) string { return "" }

var (
	machineText = regexp.MustCompile(`(gpuslice\.dev/(?:promise|planned)"?: )('(?:[^']|'')*'|"(?:[^"\\]|\\.)*")`)
	hunkHeader  = regexp.MustCompile(`(?m)^@@ .* @@$`)
	poolHash    = regexp.MustCompile(`-[0-9a-f]{8}\b`)
)

// Steady leaves out what the core's own tests hold: the annotations for machines (and so the lengths of hunks), and
// the hashes in pools' names.
func Steady(text string) string {
	text = machineText.ReplaceAllString(text, "${1}'...'")
	text = hunkHeader.ReplaceAllString(text, "@@ ... @@")
	return poolHash.ReplaceAllString(text, "-xxxxxxxx")
}

// Write writes a file and makes its folders.
func Write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func rewrite(t *testing.T, name string, archive *txtar.Archive, got map[string]string) {
	t.Helper()
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return strings.HasPrefix(f.Name, "want/") })
	for _, section := range []string{"want/exit", "want/stdout", "want/stderr"} {
		if got[section] != "" {
			archive.Files = append(archive.Files, txtar.File{Name: section, Data: []byte(got[section])})
		}
	}
	if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// StreamsTo are streams without input, environment or terminal.
func StreamsTo(out, err *bytes.Buffer) cli.Streams {
	return cli.Streams{In: strings.NewReader(""), Out: out, Err: err, Getenv: noEnvironment, Now: Now, Version: "v0.0.0-test"}
}

// Answer is what a command line prints that ends well.
func Answer(t *testing.T, args string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := program.Run(t.Context(), strings.Fields("gpuslice "+args), StreamsTo(&out, &errs)); code != 0 {
		t.Fatalf("%s: exit %d: %s", args, code, errs.String())
	}
	return out.String()
}
