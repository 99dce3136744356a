package picture

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// graph draws series over time: lines, or areas on top of each other.
func (c *canvas) graph(p Panel, series []named, r rect) {
	legend := 14 * float64((len(series)+1)/2)
	plot := rect{r.x + 46, r.y, r.w - 46, r.h - legend - foot}
	stacked := p.Fields.Defaults.Custom.Stacking.Mode == "normal"
	floors := map[time.Time]float64{}
	top := 0.0
	for _, s := range series {
		for _, point := range s.points {
			if stacked {
				floors[point.At] += point.Value
				top = max(top, floors[point.At])
				continue
			}
			top = max(top, point.Value)
		}
	}
	scale := 1.0
	if p.Fields.Defaults.Unit == "bytes" {
		scale = 1 << 30 // whole Gi at the lines
	}
	top = scale * round(top/scale)
	c.axes(p, plot, top)
	clear(floors)
	for i, s := range series {
		colour := colours[i%len(colours)]
		if s.name == "free in slices" || s.name == "in no slice" {
			colour = quiet
		}
		c.line(s, floors, stacked, plot, top, colour)
		x, y := r.x+float64(i%2)*r.w/2, r.y+r.h-legend+float64(i/2)*14+10
		c.add(`<rect x="%.1f" y="%.1f" width="9" height="9" fill="%s"/>`, x, y-8, colour)
		c.text(x+13, y, `font-size="10"`, s.name)
	}
}

// line draws one series above the floors, and raises these where series are stacked.
func (c *canvas) line(s named, floors map[time.Time]float64, stacked bool, r rect, top float64, colour string) {
	var up, down []string
	for _, point := range s.points {
		x := r.x + r.w*point.At.Sub(c.span.from).Seconds()/c.span.to.Sub(c.span.from).Seconds()
		at := func(v float64) string { return fmt.Sprintf("%.1f,%.1f", x, r.y+r.h*(1-v/top)) }
		floor := floors[point.At]
		up = append(up, at(floor+point.Value))
		if stacked {
			down = append([]string{at(floor)}, down...)
			floors[point.At] = floor + point.Value
		}
	}
	if stacked {
		c.add(`<polygon points="%s" fill="%s" fill-opacity="0.75"/>`, strings.Join(append(up, down...), " "), colour)
		return
	}
	c.add(`<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`, strings.Join(up, " "), colour)
}

// axes draws the lines behind a graph, with figures.
func (c *canvas) axes(p Panel, r rect, top float64) {
	for i := range 5 {
		y := r.y + r.h*float64(4-i)/4
		c.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#e4e4e4"/>`, r.x, y, r.x+r.w, y)
		c.text(r.x-4, y+3, `text-anchor="end" font-size="9"`, say(p.Fields.Defaults.Unit, top*float64(i)/4))
	}
	length := c.span.to.Sub(c.span.from)
	for i := range 5 {
		at := length * time.Duration(i) / 4
		c.text(r.x+r.w*float64(i)/4, r.y+r.h+12, `text-anchor="middle" font-size="9"`, at.Round(time.Second).String())
	}
}

// round returns a figure not below top that divides well by four.
func round(top float64) float64 {
	if top <= 0 {
		return 1
	}
	step := math.Pow(10, math.Floor(math.Log10(top)))
	for _, f := range []float64{1, 2, 4, 6, 8, 10} {
		if f*step >= top {
			return f * step
		}
	}
	return top
}
