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
	blocks []block
}

// block is text as it is printed, without the headers of tables if headers is false.
type block func(headers bool) string

// Line adds a line.
func (p *Page) Line(text string) { p.PaintedLine(Plain, "", "", text) }

// PaintedLine adds a line that begins with painted text.
func (p *Page) PaintedLine(paint Painter, c Colour, painted, rest string) {
	p.blocks = append(p.blocks, func(bool) string {
		line := OneLine(rest) + "\n"
		if painted != "" {
			line = paint(c, OneLine(painted)) + line
		}
		return line
	})
}

// Linef adds a line.
func (p *Page) Linef(format string, args ...any) { p.Line(fmt.Sprintf(format, args...)) }

// Empty reports whether nothing was added.
func (p *Page) Empty() bool { return len(p.blocks) == 0 }

// Rows adds a block of rows whose columns are aligned. Empty cells are printed as "-"; nothing is filled after the
// last column.
func (p *Page) Rows(indent string, rows [][]string) {
	p.blocks = append(p.blocks, func(bool) string { return align(indent, rows, unpainted) })
}

// Table adds rows of which the first is the header.
func (p *Page) Table(indent string, rows [][]string) { p.PaintedTable(indent, rows, unpainted) }

// PaintedTable adds a table whose last column, of which nothing is aligned any more, is painted row by row.
func (p *Page) PaintedTable(indent string, rows [][]string, paint func(row int, cell string) string) {
	p.blocks = append(p.blocks, func(headers bool) string {
		if headers {
			return align(indent, rows, paint)
		}
		return align(indent, rows[1:], func(row int, cell string) string { return paint(row+1, cell) })
	})
}

func unpainted(_ int, cell string) string { return cell }

func align(indent string, rows [][]string, paint func(row int, cell string) string) string {
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
	return b.String()
}

// Print writes the page.
func (p *Page) Print(out io.Writer) error { return p.print(out, true) }

func (p *Page) print(out io.Writer, headers bool) error {
	var b strings.Builder
	for _, text := range p.blocks {
		b.WriteString(text(headers))
	}
	return printText(out, b.String())
}
