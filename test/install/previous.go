package install

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// firstOfFormats is the subject of the first build that writes promises and ledgers as this one does: before any release is
// tagged, it stands for the previous one.
const firstOfFormats = "policies: deny, mutate, hide devices: the outcomes in Kubernetes' words"

// previousRelease names the release before this one: the value of GPUSLICE_PREVIOUS, else the last tag before this
// commit, else the first build that it could be. Where the checkout has none of them, why is the reason.
func previousRelease(ctx context.Context) (revision, why string) {
	if r := os.Getenv("GPUSLICE_PREVIOUS"); r != "" {
		return r, ""
	}
	if r, err := output(ctx, ".", "git", "describe", "--tags", "--abbrev=0", "HEAD^"); err == nil {
		return r, ""
	}
	r, err := output(ctx, ".", "git", "log", "-1", "--format=%H", "--fixed-strings", "--grep="+firstOfFormats)
	if err != nil {
		return "", err.Error()
	}
	if r == "" {
		return "", "the checkout has neither a tag before this commit nor its history; fetch it, or name a revision in GPUSLICE_PREVIOUS"
	}
	return r, ""
}

// Previous compiles a command of the release before this one into dir. Where the checkout has no such release, binary
// is empty and why is the reason; else it names the revision.
func Previous(ctx context.Context, dir, command string) (binary, why string, err error) {
	revision, why := previousRelease(ctx)
	if why != "" {
		return "", why, nil
	}
	archive, tree, binary := filepath.Join(dir, "tree.tar"), filepath.Join(dir, "tree"), filepath.Join(dir, "previous")
	root, err := output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err == nil {
		_, err = output(ctx, root, "git", "archive", "--output="+archive, revision)
	}
	if err == nil {
		err = os.Mkdir(tree, 0o755)
	}
	if err == nil {
		_, err = output(ctx, tree, "tar", "-xf", archive)
	}
	if err == nil {
		_, err = output(ctx, tree, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./"+command)
	}
	return binary, fmt.Sprintf("the previous release is %.12s", revision), err
}

// output runs a program in a folder and returns what it prints.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %.500s", name, strings.Join(args, " "), err, complaint.String())
	}
	return strings.TrimSpace(out.String()), nil
}
