package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// firstOfFormats is the subject of the first build that writes promises and ledgers as this one does: before any release is
// tagged, it stands for the previous one.
const firstOfFormats = "policies: deny, mutate, hide devices: the outcomes in Kubernetes' words"

// command runs a program in the checkout and returns what it prints.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %.500s", name, strings.Join(args, " "), err, complaint.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// previous names the release before this one: what GPUSLICE_PREVIOUS says, else the last tag before this commit, else the
// first build that it could be. Where the checkout has none of them, why says so.
func previous(ctx context.Context) (revision, why string) {
	if r := os.Getenv("GPUSLICE_PREVIOUS"); r != "" {
		return r, ""
	}
	if r, err := command(ctx, ".", "git", "describe", "--tags", "--abbrev=0", "HEAD^"); err == nil {
		return r, ""
	}
	r, err := command(ctx, ".", "git", "log", "-1", "--format=%H", "--fixed-strings", "--grep="+firstOfFormats)
	if err != nil {
		return "", err.Error()
	}
	if r == "" {
		return "", "the checkout has neither a tag before this commit nor its history; fetch it, or name a revision in GPUSLICE_PREVIOUS"
	}
	return r, ""
}

// buildPrevious builds the webhook of a revision, or skips the test where the checkout has none.
func buildPrevious(t *testing.T) string {
	t.Helper()
	revision, why := previous(t.Context())
	if why != "" {
		t.Skipf("no previous release to build: %s", why)
	}
	dir := t.TempDir()
	archive, tree, out := filepath.Join(dir, "tree.tar"), filepath.Join(dir, "tree"), filepath.Join(dir, "previous")
	root, err := command(t.Context(), ".", "git", "rev-parse", "--show-toplevel")
	if err == nil {
		_, err = command(t.Context(), root, "git", "archive", "--output="+archive, revision)
	}
	if err == nil {
		err = os.Mkdir(tree, 0o755)
	}
	if err == nil {
		_, err = command(t.Context(), tree, "tar", "-xf", archive)
	}
	if err == nil {
		_, err = command(t.Context(), tree, "go", "build", "-trimpath", "-o", out, "./cmd/webhook")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the previous release is %.12s", revision)
	return out
}

// promiseVersion is where the code says which rules it plans by.
var promiseVersion = regexp.MustCompile(`(?m)^const Version = (\d+)$`)

// buildNext builds this tree's webhook as the next release will be: its promises are of the next version of the rules.
func buildNext(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs("../../policies/promise/promise.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	found := promiseVersion.FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s does not say which version it is", source)
	}
	version, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	edited, overlay, out := filepath.Join(dir, "promise.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "next")
	text = promiseVersion.ReplaceAll(text, fmt.Appendf(nil, "const Version = %d", version+1))
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{source: edited}})
	if err == nil {
		err = os.WriteFile(edited, text, 0o600)
	}
	if err == nil {
		err = os.WriteFile(overlay, replaced, 0o600)
	}
	if err == nil {
		_, err = command(t.Context(), "../..", "go", "build", "-trimpath", "-overlay="+overlay, "-o", out, "./cmd/webhook")
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
