package reference

import (
	"errors"
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

// Of lists what is registered in r under gpuslice's own names, in the order of these. The type is the one that is served, and
// must be the one that the name implies. A metric without series yet has only its name to show.
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
	found, misnamed := map[string]Metric{}, []error(nil)
	for d := range descriptions {
		m, err := read(d)
		if err != nil {
			err = fmt.Errorf("read %s: %w", d, err)
			for range descriptions { // the registry is not left waiting
			}
			return nil, err
		}
		if !strings.HasPrefix(m.Name, "gpuslice_") {
			continue
		}
		m.Type = impliedType(m.Name)
		if served := types[m.Name]; served != "" && served != m.Type {
			misnamed = append(misnamed, fmt.Errorf("%s is a %s, and its name implies a %s", m.Name, served, m.Type))
		}
		found[m.Name] = m
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Metric) int { return strings.Compare(a.Name, b.Name) }), errors.Join(misnamed...)
}

func impliedType(name string) string {
	switch {
	case strings.HasSuffix(name, "_total"):
		return "counter"
	case strings.HasSuffix(name, "_duration_seconds"):
		return "histogram"
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

// Page is the text after head: what names imply and promise, and a list of the metrics with their labels.
func Page(head string, metrics []Metric) string {
	var b strings.Builder
	b.WriteString(head + "\nNames in `_total` are counters, in `_duration_seconds` histograms, others gauges.\n\n")
	for _, m := range metrics {
		labels := ""
		if len(m.Labels) > 0 {
			labels = "{" + strings.Join(m.Labels, ",") + "}"
		}
		fmt.Fprintf(&b, "- `%s%s`: %s\n", m.Name, labels, m.Help)
	}
	return b.String()
}

// Read lists the metrics of a page, without their help.
func Read(page string) (out []Metric) {
	for line := range strings.SplitSeq(page, "\n") {
		code, _, ok := strings.Cut(strings.TrimPrefix(line, "- `"), "`: ")
		if !ok || !strings.HasPrefix(code, "gpuslice_") {
			continue
		}
		name, labels, _ := strings.Cut(strings.TrimSuffix(code, "}"), "{")
		m := Metric{Name: name, Type: impliedType(name)}
		if labels != "" {
			m.Labels = strings.Split(labels, ",")
		}
		out = append(out, m)
	}
	return out
}
