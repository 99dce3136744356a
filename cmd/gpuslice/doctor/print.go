package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
)

// maxEvidence bounds the lines of evidence below one finding; -o json has all.
const maxEvidence = 5

// printFindings prints findings for people: the worst first, evidence and remedy below each, and a count at the end.
func printFindings(out io.Writer, all []Finding, paint cli.Painter) error {
	var b strings.Builder
	var counts []string
	for _, level := range Levels() {
		n := 0
		for _, f := range all {
			if f.Level == level {
				n++
				f.print(&b, paint)
			}
		}
		counts = append(counts, fmt.Sprintf("%s: %d", level, n))
	}
	fmt.Fprintln(&b, strings.Join(counts, ", "))
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("print findings: %w", err)
	}
	return nil
}

func (f Finding) print(b *strings.Builder, paint cli.Painter) {
	fmt.Fprintf(b, "%s  %s: %s\n", paint(f.Level.colour(), fmt.Sprintf("%-7s", f.Level)), f.Check, f.Summary)
	for i, e := range f.Evidence {
		if i == maxEvidence {
			fmt.Fprintf(b, "           %s\n", cli.AndMore(len(f.Evidence)-i))
			break
		}
		fmt.Fprintf(b, "           %s\n", e)
	}
	if f.Remedy != "" {
		fmt.Fprintf(b, "         > %s\n", strings.ReplaceAll(f.Remedy, "\n", "\n           "))
	}
}

func (l Level) colour() cli.Colour {
	return map[Level]cli.Colour{Problem: cli.Red, Warning: cli.Yellow, Note: cli.Cyan, OK: cli.Green}[l]
}
