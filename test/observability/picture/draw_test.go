package picture

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// fixed answers every expression alike.
type fixed []Series

func (f fixed) Range(string) ([]Series, error) { return f, nil }
func (f fixed) Now(string) ([]Series, error)   { return f, nil }

func TestDraw(t *testing.T) {
	t.Parallel()
	t.Run("each kind of panel is drawn from its series", func(t *testing.T) {
		t.Parallel()
		b, err := Read([]byte(`{"title": "b", "panels": [
		{"title": "a row", "type": "row", "gridPos": {"y": 16, "w": 24, "h": 1}},
		{"title": "one <figure>", "type": "stat", "gridPos": {"w": 4, "h": 4}, "targets": [{"expr": "x"}]},
		{"title": "bars", "type": "bargauge", "gridPos": {"y": 4, "w": 12, "h": 4}, "targets": [{"expr": "x", "legendFormat": "{{pod}} held"}]},
		{"title": "lines", "type": "timeseries", "gridPos": {"y": 8, "w": 12, "h": 8}, "targets": [{"expr": "x", "legendFormat": "{{pod}} over time"}],
		 "fieldConfig": {"defaults": {"unit": "bytes", "custom": {"stacking": {"mode": "normal"}}}}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		from := time.Unix(1e9, 0)
		series := fixed{{Labels: map[string]string{"pod": "train"}, Points: []Point{{from, 1 << 30}, {from.Add(time.Minute), 3 << 30}}}}
		svg, err := Draw(b, series, from, from.Add(time.Minute), "a test")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"one &lt;figure&gt;", ">3.22e+09<", ">a row<", ">train held<",
			">train over time<", ">4Gi<", "<polygon", ">1m0s<"} {
			if !strings.Contains(svg, want) {
				t.Errorf("no %q in\n%s", want, svg)
			}
		}
		for d := xml.NewDecoder(strings.NewReader(svg)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("the picture is no XML: %v", err)
			}
		}
	})
}
