package install

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// shift is the environment variable with the seconds by which the clock of a program of ShiftedBinary is ahead.
const shift = "TEST_CLOCK_SHIFT_SECONDS"

// Where time.Now reads the clock, and what takes its place. Package time can import nothing that reads a number.
const (
	readsClock = "	sec, nsec, mono := runtimeNow()\n	if mono == 0 {\n		return Time{uint64(nsec), sec + unixToInternal, Local}"
	shifted    = "	sec, nsec, mono := runtimeNow()\n	sec += testShift\n	if mono == 0 {\n		return Time{uint64(nsec), sec + unixToInternal, Local}"
	readsShift = `
var testShift = func() (n int64) {
	text, _ := syscall.Getenv("` + shift + `")
	sign := int64(1)
	for i := range len(text) {
		if text[i] == '-' {
			sign = -1
			continue
		}
		n = 10*n + int64(text[i]-'0')
	}
	return sign * n
}()
`
)

// ShiftedBinary is Binary of a program whose time.Now is shifted by its environment. All packages are compiled for it,
// which takes minutes the first time.
func ShiftedBinary(ctx context.Context, dir, command string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find Go's sources: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	text := strings.Replace(strings.Replace(string(source), readsClock, shifted, 1), "import (\n", "import (\n\t\"syscall\"\n", 1)
	if text == string(source) || !strings.Contains(text, shifted) {
		return "", fmt.Errorf("%s reads the clock in another way than this test knows", original)
	}
	replaced, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(replaced, []byte(text+readsShift), 0o644); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: replaced}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, list, 0o644); err != nil {
		return "", err
	}
	return build(ctx, filepath.Join(dir, filepath.Base(command)+"-shifted"), command, "-overlay", overlay)
}
