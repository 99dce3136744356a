package history

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxLine    = 64 << 10
	maxColumns = 64
)

// ErrColumns is returned for a CSV without the columns that are needed.
var ErrColumns = errors.New(
	"needs a column of the time (seconds or timestamp), one of the memory (memory_mib or memory_bytes), and one of pod, workload or container")

// columns are the indexes of a CSV's columns; -1: there is none.
type columns struct {
	seconds, memory, slice      int
	namespace, pod, workload    int
	container, device           int
	memoryInBytes, sliceInBytes bool
}

func readHeader(line []byte) (columns, error) {
	names, err := fieldsOf(line, nil)
	if err != nil {
		return columns{}, err
	}
	for i := range names {
		names[i] = bytes.TrimSpace(bytes.TrimPrefix(names[i], []byte("\ufeff")))
	}
	find := func(aliases ...string) int {
		for _, name := range aliases {
			if i := slices.IndexFunc(names, func(n []byte) bool { return strings.EqualFold(string(n), name) }); i >= 0 {
				return i
			}
		}
		return -1
	}
	c := columns{seconds: find("seconds", "timestamp", "time"), memory: find("memory_mib"),
		slice: find("slice_mib"), namespace: find("namespace"),
		pod: find("pod"), workload: find("workload"), container: find("container"), device: find("device", "gpu")}
	if c.memory < 0 {
		c.memory, c.memoryInBytes = find("memory_bytes"), true
	}
	if c.slice < 0 {
		c.slice, c.sliceInBytes = find("slice_bytes"), true
	}
	if c.seconds < 0 || c.memory < 0 || c.pod < 0 && c.workload < 0 && c.container < 0 {
		return c, fmt.Errorf("the columns are %.200q: %w", bytes.Join(names, []byte(",")), ErrColumns)
	}
	return c, nil
}

// csvReader reads rows; those of one series mostly follow each other.
type csvReader struct {
	*Records
	columns
	fields [][]byte
	name   []byte // of the series of the row before
	last   *series
}

// ReadCSV reads a CSV with a header. Times are seconds since any one epoch, or RFC 3339.
func (r *Records) ReadCSV(in io.Reader) error {
	lines := bufio.NewReaderSize(in, maxLine)
	c := csvReader{Records: r}
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) || len(line) > maxLine { // in may have a larger buffer
			return fmt.Errorf("line %d: longer than %d bytes", n, maxLine)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read line %d: %w", n, err)
		}
		if text := bytes.TrimRight(line, "\r\n"); n == 1 {
			if c.columns, err = readHeader(text); err != nil {
				return err
			}
		} else if len(text) > 0 {
			if err := c.row(text); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
		if err != nil {
			return nil
		}
	}
}

func (c *csvReader) row(line []byte) (err error) {
	if c.fields, err = fieldsOf(line, c.fields[:0]); err != nil {
		return err
	}
	if most := max(c.seconds, c.memory, c.container, c.pod, c.workload); most >= len(c.fields) {
		return fmt.Errorf("%d columns, needs %d", len(c.fields), most+1)
	}
	s, err := c.seriesOfRow()
	if err != nil {
		return err
	}
	seconds, err := parseTime(c.field(c.seconds))
	if err != nil {
		return err
	}
	mib, err := parseMemory(c.field(c.memory), c.memoryInBytes)
	if err != nil {
		return err
	}
	c.add(s, seconds, mib)
	if slice := c.field(c.slice); len(slice) > 0 && seconds >= s.last {
		if mib, err = parseMemory(slice, c.sliceInBytes); err != nil {
			return err
		}
		setMemory(&s.record.Slice, mib)
	}
	return nil
}

func (c *csvReader) field(i int) []byte {
	if i < 0 || i >= len(c.fields) {
		return nil
	}
	return c.fields[i]
}

func (c *csvReader) seriesOfRow() (*series, error) {
	var space [512]byte
	name := space[:0]
	for _, i := range []int{c.namespace, c.pod, c.workload, c.container, c.device} {
		name = append(append(name, c.field(i)...), 0)
	}
	if c.last != nil && bytes.Equal(name, c.name) {
		return c.last, nil
	}
	s := c.series[string(name)]
	if s == nil {
		text := func(i int) string { return string(c.field(i)) }
		l := labels{namespace: text(c.namespace), pod: text(c.pod), workload: text(c.workload),
			container: text(c.container), device: text(c.device)}
		if l.pod == "" && l.workload == "" && l.container == "" {
			return nil, errors.New("names no pod, workload or container")
		}
		var err error
		if s, err = c.Records.seriesOf(string(name), l); err != nil {
			return nil, err
		}
	}
	c.name, c.last = append(c.name[:0], name...), s
	return s, nil
}

// fieldsOf splits a line. Only one with quotes needs the reader of encoding/csv.
func fieldsOf(line []byte, fields [][]byte) ([][]byte, error) {
	if bytes.IndexByte(line, '"') >= 0 {
		texts, err := csv.NewReader(bytes.NewReader(line)).Read()
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			fields = append(fields, []byte(text))
		}
		return fields, nil
	}
	for len(fields) < maxColumns {
		field, rest, more := bytes.Cut(line, []byte{','})
		fields = append(fields, field)
		if !more {
			return fields, nil
		}
		line = rest
	}
	return nil, fmt.Errorf("more than %d columns", maxColumns)
}

func parseTime(text []byte) (float64, error) {
	if seconds, err := strconv.ParseFloat(string(text), 64); err == nil {
		return seconds, nil
	}
	t, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return 0, fmt.Errorf("time %.40q: accepted: seconds, or RFC 3339 such as 2026-11-01T12:00:00Z", text)
	}
	return float64(t.UnixMilli()) / 1000, nil
}

// parseMemory is MiB. An empty field is a sample that is missing, as NaN is.
func parseMemory(text []byte, inBytes bool) (float64, error) {
	if len(text) == 0 {
		text = []byte("NaN")
	}
	value, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("memory %.40q: is no number", text)
	}
	if inBytes {
		value /= mebibyte
	}
	return value, nil
}
