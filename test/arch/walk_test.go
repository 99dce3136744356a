package arch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// handlers answer reviews of pods: whatever "make functions -v" lists is in packages that they reach.
const handlers = module + "/webhook/admission/pods"

// TestWalk: whoever follows a pod through the code, by the steps of CONTRIBUTING.md or as it runs, enters no wing.
func TestWalk(t *testing.T) {
	wings := wingFolders(t)
	contributing, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	walked := stepPaths(os.DirFS("../.."), string(contributing))
	if len(walked) < 20 {
		t.Errorf("the steps name %d files and folders: %q", len(walked), walked)
	}
	for _, p := range list(t) {
		onWay := p.ImportPath == handlers
		for _, w := range walked {
			onWay = onWay || p.ImportPath == module+"/"+w || p.ImportPath == module+"/"+path.Dir(w)
		}
		for _, dep := range append(slices.Clone(p.Deps), p.ImportPath) {
			if i := slices.IndexFunc(wings, func(wing string) bool { return within(dep, wing) }); onWay && i >= 0 {
				t.Errorf("%s is on a pod's way and reaches %s, of the wing in %s", p.ImportPath, dep, wings[i])
			}
		}
	}
}

// wingFolders are the folders that test/removal takes off.
func wingFolders(t *testing.T) (folders []string) {
	t.Helper()
	text, err := os.ReadFile("../removal/wings")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 2 && strings.HasSuffix(fields[0], ":") {
			folders = append(folders, fields[2:]...)
		}
	}
	if len(folders) == 0 {
		t.Fatal("no wing has a folder")
	}
	return folders
}

var (
	step = regexp.MustCompile(`(?m)^\d+\. [^\n]*(?:\n +[^\n]*)*`)
	span = regexp.MustCompile("`([^`]+)`")
)

// stepPaths are the files and folders that the numbered steps of a page name. A name without a folder is beside the one before it.
func stepPaths(project fs.FS, page string) (paths []string) {
	for _, text := range step.FindAllString(page, -1) {
		beside := "."
		for _, m := range span.FindAllStringSubmatch(text, -1) {
			for _, name := range []string{m[1], path.Join(beside, m[1])} {
				if _, err := fs.Stat(project, name); err == nil {
					paths, beside = append(paths, name), path.Dir(name)
					break
				} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) {
					paths = append(paths, fmt.Sprintf("%s: %v", name, err))
				}
			}
		}
	}
	return paths
}

// TestStepPaths keeps the reading of steps honest.
func TestStepPaths(t *testing.T) {
	project := fstest.MapFS{"a/b/c.go": {}, "a/b/d.go": {}, "a/e/f.go": {}, "g/h.go": {}}
	page := "text `g/h.go`\n\n1. one: `a/b/c.go`,\n   `d.go`, `Create`\n2. two: `a/b`, `e`\n\n`g`\n"
	if got := stepPaths(project, page); !slices.Equal(got, []string{"a/b/c.go", "a/b/d.go", "a/b", "a/e"}) {
		t.Errorf("found %q", got)
	}
}
