package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/deploy/images/recipe"
)

const changelog = `# Changelog

## v1.2.4

- Not yet.

## v1.2.3 - 2026-01-02

Before you upgrade, rest.

### Added

- A webhook that
  gives slices.
- A guard.

### Fixed

- A leak.

## v1.2.30

- Other.
`

// checkout returns a repository with one commit.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), []byte(changelog), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "--message=one"}} {
		runGit(t, dir, args...)
	}
	return dir
}

func runGit(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.test"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", args, err, out)
	}
}

// TestMissingCompiler: a release that cannot be made fails before anything is compiled.
func TestMissingCompiler(t *testing.T) {
	t.Setenv("PATH", onlyGit(t))
	o := Options{Options: recipe.Options{Version: "v1.2.3", Checkout: checkout(t), Out: filepath.Join(t.TempDir(), "release"),
		Platforms: recipe.Platforms(), Say: func(format string, args ...any) { t.Errorf("it begins: "+format, args...) }}}
	runGit(t, o.Checkout, "tag", o.Version)
	_, err := Make(t.Context(), o)
	for _, want := range []string{"no C compiler for amd64", "no C compiler for arm64", "PLATFORMS=linux/amd64"} {
		if !errors.Is(err, recipe.ErrNoCompiler) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// onlyGit returns a folder with git and nothing else.
func onlyGit(t *testing.T) string {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(git, filepath.Join(dir, "git")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSources(t *testing.T) {
	t.Parallel()
	dirty := func(t *testing.T, dir string) {
		if err := os.WriteFile(filepath.Join(dir, "new.go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := func(t *testing.T, dir string) {
		runGit(t, dir, "tag", "v1.2.3")
		runGit(t, dir, "commit", "--quiet", "--allow-empty", "--message=two")
	}
	for _, tt := range []struct {
		name, version string
		change        func(*testing.T, string)
		trial         bool
		want          string // in the error; "" for none
	}{
		{name: "a clean checkout with a section is ready", version: "v1.2.3"},
		{name: "a version without v", version: "1.2.3", want: `version "1.2.3" is none: write VERSION=v1.2.3`},
		{name: "what git describes", version: "v1.2.3-4-gabcdef-dirty+x", want: "is none"},
		{name: "no section", version: "v2.0.0", want: `CHANGELOG.md has no section "## v2.0.0"`},
		{name: "no section, for a trial", version: "v2.0.0", trial: true},
		{name: "changes", version: "v1.2.3", change: dirty, want: "the checkout has changes: commit them, or set DIRTY=1 for a trial\n?? new.go"},
		{name: "changes, for a trial", version: "v1.2.3", change: dirty, trial: true},
		{name: "a tag that is another commit", version: "v1.2.3", change: elsewhere, want: "tag v1.2.3 is commit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := checkout(t)
			if tt.change != nil {
				tt.change(t, dir)
			}
			got, err := sources(t.Context(), Options{Options: recipe.Options{Version: tt.version, Checkout: dir}, Dirty: tt.trial})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			if err == nil && (len(got.Commit) != 40 || got.Dirty != (tt.change != nil)) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	t.Run("are those of the version", func(t *testing.T) {
		t.Parallel()
		want := []change{{"added", "A webhook that gives slices."}, {"added", "A guard."}, {"fixed", "A leak."}}
		if diff := cmp.Diff(want, changes(section(changelog, "v1.2.3"))); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("a version that only begins alike has none", func(t *testing.T) {
		t.Parallel()
		if got := section(changelog, "v1.2"); got != "" {
			t.Errorf("%q", got)
		}
	})
}
