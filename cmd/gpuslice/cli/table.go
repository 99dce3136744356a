package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Page is text for people in blocks: each block's columns are aligned among themselves.
type Page struct {
	blocks []string
}

// Line adds a line.
func (p *Page) Line(text string) { p.blocks = append(p.blocks, text+"\n") }

// Linef adds a line.
func (p *Page) Linef(format string, args ...any) { p.Line(fmt.Sprintf(format, args...)) }

// Empty reports whether nothing was added.
func (p *Page) Empty() bool { return len(p.blocks) == 0 }

// Table adds a block of rows whose columns are aligned. Empty cells are printed as "-"; nothing is filled after the
// last column.
func (p *Page) Table(indent string, rows [][]string) {
	p.PaintedTable(indent, rows, func(_ int, cell string) string { return cell })
}

// PaintedTable adds a table whose last column, of which nothing is aligned any more, is painted row by row.
func (p *Page) PaintedTable(indent string, rows [][]string, paint func(row int, cell string) string) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, row := range rows {
		line := make([]string, len(row))
		for j, cell := range row {
			line[j] = cmp.Or(OneLine(cell), "-")
		}
		if last := len(row) - 1; last >= 0 {
			line[last] = paint(i, line[last])
		}
		fmt.Fprintln(w, indent+strings.Join(line, "\t"))
	}
	w.Flush() // a strings.Builder takes everything
	p.blocks = append(p.blocks, b.String())
}

// Print writes the page.
func (p *Page) Print(out io.Writer) error {
	if _, err := io.WriteString(out, strings.Join(p.blocks, "")); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}
