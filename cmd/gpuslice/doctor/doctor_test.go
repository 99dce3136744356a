package doctor

import (
	"testing"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
)

func TestExit(t *testing.T) {
	for _, c := range []struct {
		name   string
		levels []Level
		want   error
	}{
		{"nothing", nil, nil},
		{"nothing above a note", []Level{OK, Note}, nil},
		{"a warning", []Level{Warning, Note}, cli.ExitError(cli.ExitWarned)},
		{"a problem beside a warning", []Level{Warning, Problem}, cli.ExitError(cli.ExitDenied)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []Finding
			for _, level := range c.levels {
				all = append(all, newFinding(level, "it is so"))
			}
			if got := exit(all); got != c.want {
				t.Errorf("exit: %v, want %v", got, c.want)
			}
		})
	}
}
