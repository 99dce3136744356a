package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// source is where the sources are, and the files of releases.
const source = "https://github.com/gpuslice/gpuslice"

// errNotReady is that of a checkout that is not to be released as it is.
var errNotReady = errors.New("not ready for a release")

// semantic is a version that is at once a tag of images: without build metadata.
var semantic = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// Sources are the inputs of a release.
type Sources struct {
	Commit string
	// Changes are the changelog's section of the version, without its heading.
	Changes string
	// Dirty reports whether there is more in the checkout than in the commit.
	Dirty bool
}

// sources reads the checkout, and returns an error where it is not ready for a release.
func sources(ctx context.Context, o Options) (s Sources, err error) {
	if !semantic.MatchString(o.Version) {
		return s, fmt.Errorf("%w: version %q is none: write VERSION=v1.2.3 or v1.2.3-rc.1", errNotReady, o.Version)
	}
	if s.Commit, err = git(ctx, o.Checkout, "rev-parse", "HEAD"); err != nil {
		return s, err
	}
	changed, err := git(ctx, o.Checkout, "status", "--porcelain")
	if err != nil {
		return s, err
	}
	s.Dirty = changed != ""
	if s.Dirty && !o.Dirty {
		return s, fmt.Errorf("%w: the checkout has changes: commit them, or set DIRTY=1 for a trial\n%s", errNotReady, changed)
	}
	if tagged, err := git(ctx, o.Checkout, "rev-parse", "--verify", "--quiet", "refs/tags/"+o.Version+"^{commit}"); err == nil &&
		tagged != s.Commit && !o.Dirty {
		return s, fmt.Errorf("%w: tag %s is commit %.12s, and the checkout is at %.12s: check out the tag, or take another version",
			errNotReady, o.Version, tagged, s.Commit)
	}
	text, err := os.ReadFile(filepath.Join(o.Checkout, "CHANGELOG.md"))
	if err != nil {
		return s, fmt.Errorf("read changelog: %w", err)
	}
	if s.Changes = section(string(text), o.Version); s.Changes == "" && !o.Dirty {
		return s, fmt.Errorf("%w: CHANGELOG.md has no section %q: write one, or set DIRTY=1 for a trial", errNotReady, "## "+o.Version)
	}
	return s, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// section returns the changelog's text under the heading of a version.
func section(changelog, version string) string {
	var lines []string
	in := false
	for line := range strings.Lines(changelog) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			name, _, _ := strings.Cut(strings.TrimSpace(heading), " ")
			in = name == version
			continue
		}
		if in {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, ""))
}

// change is an item of the changelog.
type change struct {
	// Kind is the heading above it in lower case, as Artifact Hub has them.
	Kind        string `json:"kind"`
	Description string `json:"description"`
}

// changes returns the items of a section.
func changes(section string) (all []change) {
	kind := "changed"
	for line := range strings.Lines(section) {
		line = strings.TrimRight(line, "\n")
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			kind = strings.ToLower(strings.TrimSpace(heading))
		} else if item, ok := strings.CutPrefix(line, "- "); ok {
			all = append(all, change{kind, item})
		} else if more := strings.TrimSpace(line); strings.HasPrefix(line, " ") && more != "" && len(all) > 0 {
			all[len(all)-1].Description += " " + more
		}
	}
	return all
}
