package inventory

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gpuslice/gpuslice/policies/config"
)

// Bounds on a file: its bytes when it is not compressed any more, its nodes, pods and values, and the bytes of one node or pod.
// A cluster of 5,000 nodes and 50,000 pods has some 60 MiB and 3 million values.
const (
	MaxItem = 256 << 10

	maxBytes  = 128 << 20
	maxNodes  = 20_000
	maxPods   = 60_000
	maxOthers = 20_000 // pools, quotas
	maxValues = 4 << 20
)

// Write writes f as compressed JSON. The same Fleet has the same bytes. A Fleet that Read
// would not accept is an error, and nothing is written.
func Write(out io.Writer, f *Fleet) error {
	err := f.check()
	if len(f.Nodes) > maxNodes || len(f.Pods) > maxPods {
		err = fmt.Errorf("%d nodes and %d pods, at most %d and %d can be read again", len(f.Nodes), len(f.Pods), maxNodes, maxPods)
	}
	var text bytes.Buffer
	if err == nil {
		compressed := gzip.NewWriter(&text)
		err = jsonv2.MarshalWrite(compressed, f, jsonv2.Deterministic(true), jsontext.AllowInvalidUTF8(true))
		err = errors.Join(err, compressed.Close())
	}
	if err == nil {
		_, err = read(bytes.NewReader(text.Bytes())) // a file that fails to be read is worth nothing later
	}
	if err == nil {
		_, err = text.WriteTo(out)
	}
	if err != nil {
		return fmt.Errorf("write the snapshot: %w", err)
	}
	return nil
}

// Read reads the output of Write, compressed or not. Its errors name the problem: a file of another kind or format, one
// that ends in the middle, one past the bounds, or a value that no cluster has.
func Read(in io.Reader) (*Fleet, error) {
	f, err := read(in)
	if err != nil {
		return nil, fmt.Errorf("read the snapshot: %w", err)
	}
	return f, nil
}

func read(in io.Reader) (*Fleet, error) {
	buffered := bufio.NewReaderSize(in, 64<<10)
	var text io.Reader = buffered
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, halfWritten(err)
		}
		text = unpacked
	}
	f := &Fleet{}
	d := decoder{header: &f.Header}
	source := &bounded{Reader: text, left: maxBytes}
	if err := jsonv2.UnmarshalRead(source, f, d.options()); source.failed != nil {
		return nil, halfWritten(source.failed)
	} else if wrong := f.Header.check(); wrong != nil && (err == nil || f.Header != (Header{})) {
		return nil, wrong
	} else if err != nil {
		return nil, plain(err)
	}
	return f, f.check()
}

func (h Header) check() error {
	switch {
	case h.Kind != Kind || h.APIVersion != config.APIVersion:
		return fmt.Errorf("it is no snapshot: apiVersion %.40q, kind %.40q; gpuslice snapshot -o FILE takes one", h.APIVersion, h.Kind)
	case h.Format > Format:
		return fmt.Errorf("it has format %d, and this build reads format %d: use the gpuslice that wrote it, or a newer one", h.Format, Format)
	case h.Format != Format:
		return fmt.Errorf("it has format %d, and this build reads format %d: take it again with gpuslice snapshot", h.Format, Format)
	}
	return nil
}

// bounded fails after so many bytes, and keeps why reading failed.
type bounded struct {
	io.Reader
	left   int
	failed error
}

func (b *bounded) Read(p []byte) (n int, err error) {
	if b.left <= 0 {
		err = fmt.Errorf("it is larger than %d MiB", maxBytes>>20)
	} else {
		n, err = b.Reader.Read(p[:min(len(p), b.left)])
	}
	b.left -= n
	if err != nil && err != io.EOF {
		b.failed = err
	}
	return n, err
}

// halfWritten explains an error of a file whose end is missing.
func halfWritten(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("it is empty or ends in the middle (%w): take it again with gpuslice snapshot", io.ErrUnexpectedEOF)
	}
	return err
}

// plain leaves out of an error the decoder's additions that help nobody.
func plain(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return halfWritten(err)
	}
	if errors.As(err, &syntax) {
		return fmt.Errorf("it is no JSON, and no gzip of it: byte %d: %w", syntax.ByteOffset, syntax.Err)
	}
	if semantic := (*jsonv2.SemanticError)(nil); errors.As(err, &semantic) {
		if semantic.Err != nil {
			return fmt.Errorf("%.200s: %w", semantic.JSONPointer, semantic.Err)
		}
		return fmt.Errorf("%.200s: %s is not accepted there", semantic.JSONPointer, semantic.JSONKind)
	}
	return err
}

// decoder reads lists an item at a time, so that memory follows the kept items and not the claims of a file.
type decoder struct {
	header *Header // before all lists in the output of Write
	values int
}

func (d *decoder) options() jsonv2.Options {
	return jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
		list(d, maxNodes, (*Node).check), list(d, maxPods, (*Pod).check), list(d, maxOthers, (*Pool).check), list(d, maxOthers, (*Quota).check),
		list(d, maxOthers, checkText),
	))
}

// list reads a list of at most so many items.
func list[T any](d *decoder, most int, check func(*T) error) *jsonv2.Unmarshalers {
	return jsonv2.UnmarshalFromFunc(func(in *jsontext.Decoder, out *[]T) error {
		if err := d.header.check(); err != nil {
			return err
		}
		if token, err := in.ReadToken(); err != nil {
			return err
		} else if token.Kind() != '[' {
			return fmt.Errorf("%s is no list", token.Kind())
		}
		*out = []T{}
		for in.PeekKind() != ']' {
			if len(*out) == most {
				return fmt.Errorf("more than %d items", most)
			}
			var item T
			if err := d.item(in, &item); err != nil {
				return fmt.Errorf("item %d: %w", len(*out), err)
			}
			if err := check(&item); err != nil {
				return err
			}
			*out = append(*out, item)
		}
		_, err := in.ReadToken()
		return err
	})
}

// item reads one item of a list.
func (d *decoder) item(in *jsontext.Decoder, out any) error {
	text, err := in.ReadValue()
	if err != nil {
		return err
	}
	d.values += valuesOf(text)
	switch {
	case len(text) > MaxItem:
		return fmt.Errorf("%s of %d bytes, at most %d", reflect.TypeOf(out).Elem().Name(), len(text), MaxItem)
	case d.values > maxValues:
		return fmt.Errorf("more than %d values", maxValues)
	}
	if err := jsonv2.Unmarshal(text, out); err != nil {
		return plain(err)
	}
	return nil
}
