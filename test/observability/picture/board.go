package picture

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"
)

// Board holds the parts of a dashboard that the picture needs.
type Board struct {
	Title  string  `json:"title"`
	Panels []Panel `json:"panels"`
}

// Panel is one panel of it.
type Panel struct {
	Title   string `json:"title"`
	Type    string `json:"type"`
	GridPos struct{ X, Y, W, H int }
	Targets []Target `json:"targets"`
	Fields  struct {
		Defaults struct {
			Unit   string  `json:"unit"`
			Max    float64 `json:"max"`
			Custom struct {
				DrawStyle string `json:"drawStyle"`
				Stacking  struct {
					Mode string `json:"mode"`
				} `json:"stacking"`
			} `json:"custom"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
}

// Target is one expression, with how its series are called.
type Target struct {
	RefID  string `json:"refId"`
	Expr   string `json:"expr"`
	Legend string `json:"legendFormat"`
}

// Series is one line of an answer.
type Series struct {
	Labels map[string]string
	Points []Point
}

// Point is one figure of it.
type Point struct {
	At    time.Time
	Value float64
}

// Source answers expressions: Range over the time that is drawn, Now at its end.
type Source interface {
	Range(expr string) ([]Series, error)
	Now(expr string) ([]Series, error)
}

// Read reads a dashboard.
func Read(text []byte) (Board, error) {
	var b Board
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fmt.Errorf("read dashboard: %w", err)
	}
	return b, nil
}

var placeholder = regexp.MustCompile(`\{\{(\w+)\}\}`)

// named is a series as the panel calls it.
type named struct {
	name   string
	points []Point
}

// ask returns the series of a panel, in the order of its expressions.
func (p Panel) ask(source Source) (out []named, err error) {
	question := source.Now
	if p.Type == "timeseries" {
		question = source.Range
	}
	for _, t := range p.Targets {
		found, err := question(t.Expr)
		if err != nil {
			return nil, fmt.Errorf("panel %q %s: %w", p.Title, t.RefID, err)
		}
		for _, s := range found {
			name := placeholder.ReplaceAllStringFunc(t.Legend, func(m string) string { return s.Labels[m[2:len(m)-2]] })
			out = append(out, named{name, s.Points})
		}
	}
	return out, nil
}
