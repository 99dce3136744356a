package bench

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"
)

// panel is a diagram of what grows with the cluster: lines with a value for each size. most is the aim, a dashed line; 0: none.
type panel struct {
	title string
	most  float64
	lines []line
}

type line struct {
	name   string
	values []float64
}

// Measures of a drawing, in pixels. Two panels stand beside each other.
const (
	panelWidth, panelHeight = 360, 200
	left, right, top, below = 48, 16, 40, 32
)

// colors are those of a panel's lines; both are seen on white and on black.
var colors = []string{"#3b82f6", "#f97316"}

// curves draws panels as SVG. The drawing needs so little that a plotting library, with its fonts, would be most of it.
func curves(sizes []int, panels []panel) []byte {
	var out bytes.Buffer
	rows := (len(panels) + 1) / 2
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11" fill="#888">`+"\n",
		2*panelWidth, rows*panelHeight)
	for i, p := range panels {
		fmt.Fprintf(&out, `<g transform="translate(%d %d)">`+"\n", i%2*panelWidth, i/2*panelHeight)
		p.draw(&out, sizes)
		out.WriteString("</g>\n")
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

func (p *panel) draw(out *bytes.Buffer, sizes []int) {
	highest := p.most
	for _, l := range p.lines {
		highest = max(highest, slices.Max(l.values))
	}
	if highest == 0 {
		highest = 1
	}
	x := func(size int) float64 {
		return left + float64(size)/float64(slices.Max(sizes))*(panelWidth-left-right)
	}
	y := func(value float64) float64 { return panelHeight - below - value/highest*(panelHeight-top-below) }
	fmt.Fprintf(out, `<text x="%d" y="14" font-size="12" font-weight="bold">%s</text>`+"\n", left, html.EscapeString(p.title))
	fmt.Fprintf(out, `<path d="M%d %d V%d H%d" fill="none" stroke="#888"/>`+"\n", left, top, panelHeight-below, panelWidth-right)
	for _, v := range []float64{0, highest} {
		fmt.Fprintf(out, `<text x="%d" y="%.1f" text-anchor="end">%.4g</text>`+"\n", left-4, y(v)+4, v)
	}
	for _, size := range sizes {
		fmt.Fprintf(out, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x(size), panelHeight-below+14, size)
	}
	if p.most > 0 {
		fmt.Fprintf(out, `<path d="M%d %.1f H%d" stroke="#888" stroke-dasharray="4 4"/>`+"\n", left, y(p.most), panelWidth-right)
	}
	for i, l := range p.lines {
		var points []string
		for k, v := range l.values {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(sizes[k]), y(v)))
		}
		fmt.Fprintf(out, `<text x="%d" y="30" fill="%s">%s</text>`+"\n", left+i*110, colors[i], html.EscapeString(l.name))
		fmt.Fprintf(out, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(points, " "), colors[i])
	}
}

// TestCurves: a drawing is XML, and has each value where it belongs.
func TestCurves(t *testing.T) {
	t.Parallel()
	drawn := curves([]int{0, 100},
		[]panel{{title: "<memory>", most: 400, lines: []line{{"leader", []float64{0, 200}}, {"replica & co", []float64{100, 0}}}},
			{title: "none", lines: []line{{"all", []float64{0, 0}}}}})
	var found struct {
		Panels []struct {
			Lines []struct {
				Points string `xml:"points,attr"`
			} `xml:"polyline"`
		} `xml:"g"`
	}
	if err := xml.Unmarshal(drawn, &found); err != nil {
		t.Fatalf("%v\n%s", err, drawn)
	}
	var got []string
	for _, p := range found.Panels {
		for _, l := range p.Lines {
			got = append(got, l.Points)
		}
	}
	if want := []string{"48.0,168.0 344.0,104.0", "48.0,136.0 344.0,168.0", "48.0,168.0 344.0,168.0"}; !slices.Equal(got, want) {
		t.Errorf("drawn %q, want %q", got, want)
	}
}
