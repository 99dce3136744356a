// Package abuse collects the attacks that tests carry out. Each attempt belongs to an attack of webhook/THREATS.md. The program in
// "table" prints the attempts, and fails where a row of the page has none.
package abuse

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Directory names the environment variable with the folder that attempts are written to. Without it they are only logged.
const Directory = "GPUSLICE_ABUSE"

// Outcome is the outcome of an attack.
type Outcome string

// Denied: the API server or the node rejected it. Contained: it was accepted and has no effect. Reported: it has an effect for a
// time, and its owner and the operator learn of it.
const (
	Denied    Outcome = "denied"
	Contained Outcome = "contained"
	Reported  Outcome = "reported"
)

// Attempt is one attack, carried out once.
type Attempt struct {
	Threat  string  `json:"threat"`          // the row of the page, as "A7"
	Attack  string  `json:"attack"`          // the attacker's action
	Outcome Outcome `json:"outcome"`         // its outcome
	Words   string  `json:"words,omitempty"` // the message for the attacker or the owner
	Held    string  `json:"held,omitempty"`  // the memory held beyond the slice, and for how long
	Test    string  `json:"test"`            // set by Report
}

// Report records an attempt once t has passed.
func Report(t testing.TB, a Attempt) {
	t.Helper()
	a.Test, _, _ = strings.Cut(t.Name(), "/")
	t.Logf("attack %s, %s: %s %s %s", a.Threat, a.Attack, a.Outcome, a.Words, a.Held)
	dir := os.Getenv(Directory)
	if dir == "" {
		return
	}
	t.Cleanup(func() {
		if t.Failed() || t.Skipped() {
			return
		}
		if err := a.write(dir); err != nil {
			t.Error(err)
		}
	})
}

// write appends the attempt to the file of this process.
func (a Attempt) write(dir string) error {
	line, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%d.jsonl", os.Getpid())), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		return err
	}
	return file.Close()
}
