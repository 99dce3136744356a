package cli

import (
	"errors"
	"fmt"
	"testing"
)

func TestTally(t *testing.T) {
	for _, c := range []struct {
		name  string
		tally Tally
		want  error
	}{
		{"all well", Tally{}, nil},
		{"a warning", Tally{Warned: true}, ExitError(ExitWarned)},
		{"one denied beside a warning", Tally{Denied: true, Warned: true}, ExitError(ExitDenied)},
		{"one unreadable beside a denied one", Tally{Denied: true, NoAnswer: true}, ExitError(ExitNoAnswer)},
		{"a bug beside everything else", Tally{Denied: true, NoAnswer: true, Internal: true}, ExitError(ExitInternal)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.tally.Exit(); got != c.want {
				t.Errorf("exit: %v, want %v", got, c.want)
			}
		})
	}
	t.Run("a failure is counted by its kind", func(t *testing.T) {
		var seen Tally
		seen.Failed(errors.New("not YAML"))
		if seen != (Tally{NoAnswer: true}) {
			t.Errorf("%+v", seen)
		}
		seen.Failed(fmt.Errorf("pod.yaml: %w", ErrInternal))
		if seen != (Tally{NoAnswer: true, Internal: true}) {
			t.Errorf("%+v", seen)
		}
	})
}
