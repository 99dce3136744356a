// Package openb reads the files of the trace cluster-trace-gpu-v2023 (https://github.com/alibaba/clusterdata): a list of nodes and
// one of pods, as CSV.
package openb

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
)

// Resource is the name of a whole GPU on the trace's nodes.
const Resource = "nvidia.com/gpu"

// Bounds of the input.
const (
	maxBytes   = 256 << 20 // of a file, decompressed
	maxRows    = 1_000_000
	maxDevices = 64
	maxAmount  = 1 << 40
)

// ErrFormat is a file that is no list of this form.
var ErrFormat = errors.New("not a list of the trace openb")

// Read reads the nodes and the pods of a trace, which may be compressed with gzip. All pods are there at once, in the order of the
// list. Requests are whole GPUs, today's layout.
func Read(nodes, pods io.Reader) (*demand.Fleet, error) {
	r := reader{fleet: &demand.Fleet{}, kinds: map[string]int{}, allowed: map[string][]bool{}, names: map[string]bool{}}
	if err := read(nodes, []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}, r.node); err != nil {
		return nil, fmt.Errorf("read nodes: %w", err)
	}
	clear(r.names)
	if err := read(pods, []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"}, r.pod); err != nil {
		return nil, fmt.Errorf("read pods: %w", err)
	}
	r.fleet.Units = map[string]int64{Resource: 1}
	return r.fleet, nil
}

type reader struct {
	fleet   *demand.Fleet
	kinds   map[string]int
	allowed map[string][]bool // by gpu_spec
	names   map[string]bool   // of the list's lines so far
}

// row is a line of a file by the names of its columns.
type row struct {
	columns []int
	names   []string
	cells   []string
	err     error
}

func (r *row) text(i int) string { return strings.TrimSpace(r.cells[r.columns[i]]) }

// number is an integer of a cell. The first error is kept.
func (r *row) number(i int, most int64) int64 {
	text := r.text(i)
	n, err := strconv.ParseInt(text, 10, 64)
	if (err != nil || n < 0 || n > most) && r.err == nil {
		r.err = fmt.Errorf("%s %.40q: accepted: an integer from 0 to %d", r.names[i], text, most)
	}
	return n
}

// read passes each line on. Columns may stand in any order, and others beside.
func read(in io.Reader, names []string, add func(*row) error) error {
	plain, err := decompress(in)
	if err != nil {
		return err
	}
	limited := &io.LimitedReader{R: plain, N: maxBytes + 1}
	c := csv.NewReader(limited)
	c.ReuseRecord = true
	header, err := c.Read()
	if err != nil {
		return fmt.Errorf("%w: header with columns %s: %w", ErrFormat, strings.Join(names, ", "), err)
	}
	r := row{names: names}
	for _, name := range names {
		i := slices.IndexFunc(header, func(cell string) bool { return strings.TrimSpace(strings.TrimPrefix(cell, "\ufeff")) == name })
		if i < 0 {
			return fmt.Errorf("%w: column %s is missing: accepted are %s, and others beside", ErrFormat, name, strings.Join(names, ", "))
		}
		r.columns = append(r.columns, i)
	}
	for rows := 0; ; rows++ {
		r.cells, err = c.Read()
		if limited.N <= 0 || rows > maxRows {
			return fmt.Errorf("%w: at most %d lines and %d MiB are read", ErrFormat, maxRows, maxBytes>>20)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrFormat, err)
		}
		if err := add(&r); err != nil {
			line, _ := c.FieldPos(0)
			return fmt.Errorf("%w: line %d: %w", ErrFormat, line, err)
		}
	}
}

func decompress(in io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(in)
	if magic, err := buffered.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return buffered, nil
	}
	z, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("%w: decompress: %w", ErrFormat, err)
	}
	return z, nil
}

func (r *reader) node(line *row) error {
	kind := demand.Kind{Model: line.text(4), CPU: line.number(1, maxAmount),
		Memory: line.number(2, maxAmount), Devices: int(line.number(3, maxDevices))}
	name := line.text(0)
	switch {
	case line.err != nil:
		return line.err
	case name == "":
		return errors.New("sn is empty: accepted: the name of a node")
	case r.names[name]:
		return fmt.Errorf("sn %.60q: two nodes have that name", name)
	case strings.Contains(kind.Model, "|"):
		return fmt.Errorf("model %.40q: accepted: one model", kind.Model)
	}
	if kind.Devices > 0 {
		kind.Strategy, kind.Offers = layout.Exclusive, map[string]int64{Resource: int64(kind.Devices)}
	}
	key := fmt.Sprintf("%d %d %d %s", kind.CPU, kind.Memory, kind.Devices, kind.Model)
	i, known := r.kinds[key]
	if !known {
		i = len(r.fleet.Kinds)
		r.kinds[key] = i
		r.fleet.Kinds = append(r.fleet.Kinds, kind)
	}
	name = strings.Clone(name)
	r.names[name] = true
	r.fleet.Add(name, i)
	return nil
}

func (r *reader) pod(line *row) error {
	p := demand.Pod{Name: strings.Clone(line.text(0)), CPU: line.number(1, maxAmount), Memory: line.number(2, maxAmount),
		Devices: int(line.number(3, maxDevices)), Share: int(line.number(4, demand.Whole))}
	switch {
	case line.err != nil:
		return line.err
	case p.Name == "":
		return errors.New("name is empty: accepted: the name of a pod")
	case r.names[p.Name]:
		return fmt.Errorf("name %.60q: two pods have that name", p.Name)
	case p.Devices == 0 && p.Share > 0:
		return fmt.Errorf("gpu_milli %d with num_gpu 0: accepted: num_gpu 1 for a part of a GPU", p.Share)
	case p.Devices > 0 && p.Share == 0:
		return fmt.Errorf("gpu_milli 0 with num_gpu %d: accepted: 1 to %d thousandths of each GPU", p.Devices, demand.Whole)
	case p.Devices > 1 && p.Share < demand.Whole:
		return fmt.Errorf("gpu_milli %d with num_gpu %d: accepted: a part of one GPU, or whole GPUs", p.Share, p.Devices)
	}
	r.names[p.Name] = true
	if p.Devices > 0 {
		p.Requests = map[string]int64{Resource: int64(p.Devices)}
		p.Pool, p.Units = Resource, int64(p.Devices)
		p.Allowed = r.allowedBy(line.text(5))
	}
	r.fleet.Pods = append(r.fleet.Pods, p)
	return nil
}

// allowedBy are the kinds whose model a gpu_spec names; nil: any.
func (r *reader) allowedBy(spec string) []bool {
	if spec == "" {
		return nil
	}
	if known, ok := r.allowed[spec]; ok {
		return known
	}
	models := strings.Split(spec, "|")
	for i := range models {
		models[i] = strings.TrimSpace(models[i])
	}
	allowed := make([]bool, len(r.fleet.Kinds))
	for i := range allowed {
		allowed[i] = slices.Contains(models, r.fleet.Kinds[i].Model)
	}
	r.allowed[strings.Clone(spec)] = allowed
	return allowed
}
