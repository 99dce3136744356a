package demo

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "record the demonstration")

// recordingFile is what "make run" prints.
const recordingFile = "RECORDING.txt"

var (
	poolHash = regexp.MustCompile(`-[0-9a-f]{8}\b`)
	figure   = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
)

// looseLines are lines without what differs from run to run: times, process IDs, what was in use at that moment.
func looseLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(poolHash.ReplaceAllString(line, "")), " ")
		if line = figure.ReplaceAllString(line, "N"); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// checkRecording holds the recording against what was printed now: each of its lines is there.
func checkRecording(t *testing.T, printed string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(recordingFile, []byte(strings.TrimLeft(printed, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	recorded, err := os.ReadFile(recordingFile)
	if err != nil {
		t.Fatal(err)
	}
	_, compiler := exec.LookPath("gcc")
	now := strings.Join(looseLines(printed), "\n")
	for _, line := range looseLines(string(recorded)) {
		story := strings.HasPrefix(line, "Ns ") || strings.HasPrefix(line, "=== Two pods")
		if !strings.Contains(now, line) && (compiler == nil || !story) {
			t.Errorf("recorded and not printed (go test ./test/demo -run TestLocal -update records again): %s", line)
		}
	}
}
