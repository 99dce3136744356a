package reference

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric is one metric as it is registered.
type Metric struct {
	Name, Type, Help string
	Labels           []string
}

// Of lists what is registered in r under gpuslice's own names, in the order of these. The type is the one that is served; a
// metric without series yet has none to show, and is a counter where its name ends in _total, else a gauge.
func Of(r *prometheus.Registry) ([]Metric, error) {
	served, err := r.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	types := map[string]string{}
	for _, family := range served {
		types[family.GetName()] = strings.ToLower(family.GetType().String())
	}
	descriptions := make(chan *prometheus.Desc)
	go func() { r.Describe(descriptions); close(descriptions) }()
	found := map[string]Metric{}
	for d := range descriptions {
		m, err := read(d)
		if err != nil {
			err = fmt.Errorf("read %s: %w", d, err)
			for range descriptions { // the registry is not left waiting
			}
			return nil, err
		}
		if m.Type = types[m.Name]; m.Type == "" {
			m.Type = conventional(m.Name)
		}
		if strings.HasPrefix(m.Name, "gpuslice_") {
			found[m.Name] = m
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Metric) int { return strings.Compare(a.Name, b.Name) }), nil
}

func conventional(name string) string {
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

// read takes a description apart by the text it prints, since it has nothing else to show.
func read(d *prometheus.Desc) (Metric, error) {
	var m Metric
	for field, to := range map[string]*string{"fqName: ": &m.Name, "help: ": &m.Help} {
		_, rest, _ := strings.Cut(d.String(), field)
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return m, fmt.Errorf("find %s: %w", field, err)
		}
		if *to, err = strconv.Unquote(quoted); err != nil {
			return m, fmt.Errorf("find %s: %w", field, err)
		}
	}
	_, rest, ok := strings.Cut(d.String()[strings.LastIndex(d.String(), "constLabels: {"):], "constLabels: {")
	constant, variable, ok2 := strings.Cut(strings.TrimSuffix(rest, "}}"), "}, variableLabels: {")
	if !ok || !ok2 {
		return m, fmt.Errorf("find labels")
	}
	for pair := range strings.SplitSeq(constant, ",") {
		if name, _, ok := strings.Cut(pair, "="); ok {
			m.Labels = append(m.Labels, name)
		}
	}
	for name := range strings.SplitSeq(variable, ",") {
		if name != "" {
			m.Labels = append(m.Labels, name)
		}
	}
	return m, nil
}

// Page is the text between head and foot: a table of the metrics.
func Page(head string, metrics []Metric) string {
	var b strings.Builder
	b.WriteString(head + "\n| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range metrics {
		labels := "none"
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, labels, m.Help)
	}
	return b.String()
}

// Read lists the metrics of a page, without their help.
func Read(page string) (out []Metric) {
	for line := range strings.SplitSeq(page, "\n") {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| `gpuslice_") || len(cells) < 4 {
			continue
		}
		m := Metric{Name: strings.Trim(cells[0], "|` "), Type: cells[1]}
		if cells[2] != "none" {
			m.Labels = strings.Split(strings.Trim(cells[2], "`"), "`, `")
		}
		out = append(out, m)
	}
	return out
}
