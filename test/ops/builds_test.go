package ops

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/gpuslice/gpuslice/test/install"
)

// buildPrevious builds the webhook of the previous release, or skips the test where the checkout has none.
func buildPrevious(t *testing.T) string {
	t.Helper()
	binary, what, err := install.Previous(t.Context(), t.TempDir(), "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	if binary == "" {
		t.Skipf("no previous release to build: %s", what)
	}
	t.Log(what)
	return binary
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
		cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-overlay="+overlay, "-o", out, "../../cmd/webhook")
		var text []byte
		if text, err = cmd.CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, text)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
