package picture

import (
	"fmt"
	"html"
	"strings"
	"time"
)

// Size of a cell of Grafana's grid of 24 columns, and what a panel leaves free.
const (
	cellWidth, cellHeight = 50, 34
	gap                   = 4
	head                  = 24 // of a panel: its title
	foot                  = 16 // of a graph: its time
)

// colours can be distinguished also where red and green are not.
var colours = []string{"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee9944", "#7766cc"}

const quiet = "#d4d9de" // of what nobody holds

// span is the time that is drawn.
type span struct{ from, to time.Time }

// canvas collects the picture.
type canvas struct {
	strings.Builder
	span span
}

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

func (c *canvas) text(x, y float64, style, text string) {
	c.add(`<text x="%.1f" y="%.1f" %s>%s</text>`, x, y, style, html.EscapeString(text))
}

// rect is a place on the canvas.
type rect struct{ x, y, w, h float64 }

// Draw returns the dashboard as SVG. caption is the source of the figures.
func Draw(b Board, source Source, from, to time.Time, caption string) (string, error) {
	c := &canvas{span: span{from, to}}
	bottom := 0
	for _, p := range b.Panels {
		g := p.GridPos
		bottom = max(bottom, g.Y+g.H)
		if p.Type == "row" {
			c.text(8, float64(g.Y*cellHeight+62), `font-size="14" font-weight="bold"`, p.Title)
			continue
		}
		series, err := p.ask(source)
		if err != nil {
			return "", err
		}
		c.panel(p, series,
			rect{float64(g.X * cellWidth), float64(g.Y*cellHeight + 40), float64(g.W*cellWidth - gap), float64(g.H*cellHeight - gap)})
	}
	top := &canvas{}
	top.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11" fill="#333">`,
		24*cellWidth, bottom*cellHeight+44)
	top.add(`<rect width="100%%" height="100%%" fill="#f4f5f5"/>`)
	top.text(8, 24, `font-size="18" font-weight="bold"`, b.Title)
	top.text(110, 24, `fill="#666"`, caption)
	return top.String() + c.String() + "</svg>\n", nil
}

func (c *canvas) panel(p Panel, series []named, r rect) {
	c.add(`<rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" fill="#fff" stroke="#ddd"/>`, r.x, r.y, r.w, r.h)
	c.text(r.x+8, r.y+16, `font-weight="bold"`, p.Title)
	inner := rect{r.x + 8, r.y + head, r.w - 16, r.h - head - 6}
	switch {
	case len(series) == 0:
		c.text(inner.x+inner.w/2, inner.y+inner.h/2, `text-anchor="middle" fill="#999"`, "none")
	case p.Type == "stat":
		c.text(inner.x+inner.w/2, inner.y+inner.h/2+14, `text-anchor="middle" font-size="34"`, say(p.Fields.Defaults.Unit, last(series[0])))
	case p.Type == "bargauge":
		c.bars(p, series, inner)
	default:
		c.graph(p, series, inner)
	}
}

// bars draws one bar a series, from 0.
func (c *canvas) bars(p Panel, series []named, r rect) {
	most := p.Fields.Defaults.Max
	for _, s := range series {
		most = max(most, last(s))
	}
	row := min(26, r.h/float64(len(series)))
	label := r.w * 0.45
	for i, s := range series {
		y := r.y + float64(i)*row
		width := (r.w - label - 60) * last(s) / max(most, 1e-12)
		c.text(r.x, y+row*0.65, "", s.name)
		c.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, r.x+label,
			y+row*0.15, max(width, 1), row*0.7, colours[i%len(colours)])
		c.text(r.x+label+width+6, y+row*0.65, "", say(p.Fields.Defaults.Unit, last(s)))
	}
}

func last(s named) float64 {
	if len(s.points) == 0 {
		return 0
	}
	return s.points[len(s.points)-1].Value
}

// say prints a figure with its unit.
func say(unit string, v float64) string {
	switch {
	case unit == "bytes":
		return fmt.Sprintf("%.4gGi", v/(1<<30))
	case unit == "percentunit":
		return fmt.Sprintf("%.0f%%", v*100)
	case unit == "s" && v >= 86400:
		return fmt.Sprintf("%.3gd", v/86400)
	case unit == "s" && v < 1:
		return fmt.Sprintf("%.3gms", v*1000)
	case unit == "s":
		return fmt.Sprintf("%.3gs", v)
	case unit == "ops":
		return fmt.Sprintf("%.3g/s", v)
	}
	return fmt.Sprintf("%.3g", v)
}
