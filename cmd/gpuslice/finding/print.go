package finding

import (
	"fmt"
	"io"
	"strings"
)

// maxEvidence bounds the lines of evidence below one finding; -o json has all.
const maxEvidence = 5

// Print writes findings for people: the worst first, evidence and mend below each, and a count at the end. paint
// colours a level; nil leaves it plain.
func Print(out io.Writer, all []Finding, paint func(Level, string) string) error {
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

func (f Finding) print(b *strings.Builder, paint func(Level, string) string) {
	level := fmt.Sprintf("%-7s", f.Level)
	if paint != nil {
		level = paint(f.Level, level)
	}
	fmt.Fprintf(b, "%s  %s: %s\n", level, f.Check, f.What)
	for i, e := range f.Evidence {
		if i == maxEvidence {
			fmt.Fprintf(b, "           and %d more\n", len(f.Evidence)-i)
			break
		}
		fmt.Fprintf(b, "           %s\n", e)
	}
	if f.Mend != "" {
		fmt.Fprintf(b, "         > %s\n", strings.ReplaceAll(f.Mend, "\n", "\n           "))
	}
}
