package history

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxLabels = 64
	maxValue  = 16 << 20 // bytes of one value of the JSON that is kept in memory
)

// errValue is returned for a value that takes more than maxValue.
var errValue = fmt.Errorf("a value of more than %d MiB", maxValue>>20)

// budget lets so many bytes through.
type budget struct {
	in   io.Reader
	left int
	over error // of more
}

func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.over
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// take takes a sample.
type take func(seconds, value float64)

// rangeReader reads answers of Prometheus' API.
type rangeReader struct {
	*jsontext.Decoder
	budget *budget
	use    func(labels map[string]string) (take, error) // for the samples of a series
	warned func(text string)                            // of what the server says beside its data
}

// ReadRangeQuery reads the answers to range queries as Prometheus' HTTP API writes them, one after the other:
// https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries. Series of the metric "", whose names an aggregation left
// out, are bytes of memory. Other metrics are known by their names.
func (r *Records) ReadRangeQuery(in io.Reader, metric string) error {
	return readRangeQuery(in, func(labels map[string]string) (take, error) {
		return r.useOf(cmp.Or(metric, labels["__name__"]), labels)
	}, r.Incomplete.add)
}

func readRangeQuery(in io.Reader, use func(labels map[string]string) (take, error), warned func(text string)) error {
	b := &budget{in, maxValue, errValue}
	reader := &rangeReader{jsontext.NewDecoder(b), b, use, warned}
	if err := reader.answers(); err != nil {
		return fmt.Errorf("read a range query's answer: %w", err)
	}
	return nil
}

func (r *rangeReader) answers() error {
	for n := 0; ; n++ {
		if _, err := r.peek(); n > 0 && errors.Is(err, io.EOF) {
			return nil
		}
		if err := r.answer(); err != nil {
			return err
		}
	}
}

// peek is the kind of the next token.
func (r *rangeReader) peek() (jsontext.Kind, error) {
	kind := r.PeekKind()
	if kind == 0 {
		_, err := r.ReadToken()
		return 0, err
	}
	return kind, nil
}

// each reads an object or array and calls read for each of its values, with its name.
func (r *rangeReader) each(open jsontext.Kind, read func(name string) error) error {
	if kind, err := r.peek(); err != nil {
		return err
	} else if kind != open {
		return fmt.Errorf("%v where %v was expected, at %s", kind, open, cmp.Or(r.StackPointer(), "the beginning"))
	}
	if _, err := r.ReadToken(); err != nil {
		return err
	}
	for {
		kind, err := r.peek()
		if err != nil {
			return err
		}
		if kind == '}' || kind == ']' {
			_, err := r.ReadToken()
			return err
		}
		name := ""
		if open == '{' {
			token, err := r.ReadToken()
			if err != nil {
				return err
			}
			name = token.String()
		}
		if err := read(name); err != nil {
			return err
		}
		r.budget.left = maxValue
	}
}

func (r *rangeReader) answer() error {
	var status, problem string
	found := false
	var data func(name string) error
	data = func(name string) (err error) {
		switch name {
		case "data":
			return r.each('{', data)
		case "result":
			found = true
			return r.each('[', func(string) error { return r.series() })
		case "status":
			status, err = r.text()
		case "error":
			problem, err = r.text()
		case "warnings":
			return r.warnings()
		case "isPartial": // of VictoriaMetrics
			var partial string
			if partial, err = r.text(); partial == "true" {
				r.warned("isPartial")
			}
		default:
			err = r.SkipValue()
		}
		return err
	}
	if err := r.each('{', data); err != nil {
		return err
	}
	if status != "success" && status != "" {
		return fmt.Errorf("prometheus answered %.40q: %.300s", status, problem)
	}
	if !found {
		return errors.New("it has no data.result")
	}
	return nil
}

// warnings reads what Prometheus, Thanos and Mimir say beside an answer that lacks a part. null: nothing.
func (r *rangeReader) warnings() error {
	if kind, err := r.peek(); err != nil || kind != '[' {
		return cmp.Or(err, r.SkipValue())
	}
	return r.each('[', func(string) error {
		text, err := r.text()
		if err == nil && !strings.HasPrefix(text, "PromQL ") { // of the query, not of the data
			r.warned(text)
		}
		return err
	})
}

func (r *rangeReader) text() (string, error) {
	token, err := r.ReadToken()
	if err != nil {
		return "", err
	}
	return token.String(), nil
}

// series reads {"metric": {...}, "values": [[seconds, "value"], ...]}, in any order.
func (r *rangeReader) series() error {
	var use take
	var early func() error // reads samples that stand before their metric
	err := r.each('{', func(name string) (err error) {
		switch name {
		case "metric":
			use, err = r.user()
			return err
		case "value", "values":
			if use != nil {
				return r.samples(name, use)
			}
			if early != nil {
				return errors.New("a series with samples twice before its metric")
			}
			text, err := r.ReadValue()
			kept := rangeReader{Decoder: jsontext.NewDecoder(bytes.NewReader(text.Clone()))}
			early = func() error { return kept.samples(name, use) }
			return err
		}
		return r.SkipValue()
	})
	switch {
	case err != nil:
		return err
	case use == nil:
		return errors.New("a series without metric")
	case early != nil:
		return early()
	}
	return nil
}

// samples calls use for the [seconds, "value"] of "value", or for each of a list of them.
func (r *rangeReader) samples(name string, use take) error {
	if name == "value" {
		return r.sample(use)
	}
	if open, err := r.ReadToken(); err != nil || open.Kind() != '[' {
		return cmp.Or(err, errors.New(`the samples are no list of [seconds, "value"]`))
	}
	for r.PeekKind() != ']' { // all within one budget: a series has no more than maxValue
		if err := r.sample(use); err != nil {
			return err
		}
	}
	_, err := r.ReadToken()
	return err
}

func (r *rangeReader) sample(use take) error {
	text, err := r.ReadValue()
	if err != nil {
		return err
	}
	if comma := bytes.IndexByte(text, ','); text.Kind() == '[' && comma > 0 {
		at, wrong := parseNumber(bytes.TrimSpace(text[1:comma]))
		v, err := parseNumber(bytes.Trim(bytes.TrimSpace(text[comma+1:len(text)-1]), `"`))
		if wrong == nil && (err == nil || errors.Is(err, strconv.ErrRange)) {
			use(at, v)
			return nil
		}
	}
	return fmt.Errorf("the sample %.60s is not [seconds, \"value\"]", text)
}

// parseNumber is strconv.ParseFloat, faster for whole numbers, which most are.
func parseNumber(text []byte) (float64, error) {
	const exact = 15 // digits that a float64 has
	if len(text) == 0 || len(text) > exact {
		return strconv.ParseFloat(string(text), 64)
	}
	var whole int64
	for _, c := range text {
		if c < '0' || c > '9' {
			return strconv.ParseFloat(string(text), 64)
		}
		whole = whole*10 + int64(c-'0')
	}
	return float64(whole), nil
}

// user reads the labels of a series, and returns the function that takes its samples.
func (r *rangeReader) user() (take, error) {
	all := map[string]string{}
	err := r.each('{', func(name string) error {
		value, err := r.text()
		all[name] = value
		if len(all) > maxLabels {
			return fmt.Errorf("a series with more than %d labels", maxLabels)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return r.use(all)
}

// ignore takes samples that are of no use.
func ignore(_, _ float64) {}

// useOf returns the function that takes a metric's samples.
func (r *Records) useOf(metric string, all map[string]string) (take, error) {
	if metric == podOwner {
		return r.useOwner(labelsOf(all), Owner{all["owner_kind"], all["owner_name"]}), nil
	}
	if metric == lastTerminated && all["reason"] != oomKilled {
		return ignore, nil
	}
	use, known := metricUses[metric]
	if !known {
		if metric != "" && !strings.HasSuffix(metric, "_bytes") {
			return ignore, nil
		}
		use = useBytes
	}
	if !speaksOfOthers(metric) && all["namespace"] != "" && all["namespace"] != r.System {
		delete(all, "exported_namespace")
		delete(all, "exported_pod")
	}
	l := labelsOf(all)
	if r.Cluster != "" && l.cluster != r.Cluster {
		return ignore, nil
	}
	if l.pod == "" && l.workload == "" && l.container == "" {
		r.Unnamed++
		return ignore, nil
	}
	if strings.HasPrefix(metric, dcgmPrefix) {
		if ofExporter(all) {
			if metric == dcgmUsed {
				r.Exporters++
			}
			return ignore, nil
		}
		r = r.dcgm()
		l.gpu = l.cluster + "/" + l.device
	}
	if len(all["result"]) > maxName {
		return nil, fmt.Errorf("a label result of %d characters, at most %d", len(all["result"]), maxName)
	}
	name := strings.Join([]string{metric, l.cluster, l.namespace, l.pod, l.workload, l.container, l.device, all["result"]}, "\x00")
	s := r.series[name]
	if s == nil {
		var err error
		if s, err = r.seriesOf(name, l); r.server && (errors.Is(err, ErrTooMuch) || errors.Is(err, errName)) {
			r.leaveOut(l.namespace)
			return ignore, nil
		} else if err != nil {
			return nil, err
		}
	}
	if result := all["result"]; result != "" && result != "terminated" {
		return ignore, nil
	}
	return func(seconds, value float64) { use(r, s, seconds, value) }, nil
}

// speaksOfOthers reports whether a metric is of other pods than the one that serves it, in any namespace. Of gpuslice's own, those of
// agents are.
func speaksOfOthers(metric string) bool {
	return strings.HasPrefix(metric, dcgmPrefix) || strings.HasPrefix(metric, "kube_")
}

// labelsOf takes the labels that name a series. Prometheus renames the labels of a scraped series that its own have the
// names of to exported_.
func labelsOf(all map[string]string) labels {
	of := func(name string) string { return cmp.Or(all["exported_"+name], all[name]) }
	device := slices.DeleteFunc([]string{all["Hostname"], all["node"], of("device"), cmp.Or(all["UUID"], all["gpu"]), all["GPU_I_ID"]},
		func(s string) bool { return s == "" })
	return labels{cluster: clusterOf(all), namespace: of("namespace"), pod: of("pod"), workload: all["workload"],
		container: of("container"), device: strings.Join(device, "/")}
}

// clusterNames are the names under which servers of several clusters tell them apart: labels that each cluster's Prometheus or agent adds.
const clusterNames = "cluster,cluster_name,cluster_id,k8s_cluster_name"

var clusterLabels = strings.Split(clusterNames, ",")

func clusterOf(all map[string]string) string {
	for _, name := range clusterLabels {
		if all[name] != "" {
			return all[name]
		}
	}
	return ""
}

// labelOfExporter marks series that name the pod of DCGM exporter.
const labelOfExporter = "of_exporter"

// ofExporter reports whether a series of DCGM exporter names the exporter's own pod, as that of a GPU that no pod has: by the container of
// the exporter's chart or of the GPU Operator, or by the pod.
func ofExporter(all map[string]string) bool {
	if all["exported_pod"] != "" {
		return false
	}
	return all[labelOfExporter] != "" || all["container"] == "exporter" || strings.Contains(all["container"], "dcgm-exporter") || strings.Contains(all["pod"], "dcgm-exporter")
}
