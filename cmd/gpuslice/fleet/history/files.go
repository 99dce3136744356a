package history

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadFile reads a file, or in for "-": the JSON of range queries or CSV, gzipped or not. It ends early if ctx ends.
func (r *Records) ReadFile(ctx context.Context, path string, in io.Reader) error {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	if err := r.read(&cancelable{ctx, in}); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (r *Records) read(in io.Reader) error {
	b := bufio.NewReaderSize(in, 256<<10)
	if start, _ := b.Peek(2); bytes.Equal(start, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return fmt.Errorf("unzip: %w", err)
		}
		b = bufio.NewReaderSize(z, 256<<10)
	}
	start, err := b.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read: %w", err)
	}
	if len(start) == 0 {
		return errors.New("the file is empty")
	}
	if text := bytes.TrimSpace(bytes.TrimPrefix(start, []byte("\ufeff"))); len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		return r.ReadRangeQuery(b, "")
	}
	return r.ReadCSV(b)
}

// cancelable is a reader that ends with a context.
type cancelable struct {
	ctx context.Context
	in  io.Reader
}

func (c *cancelable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.in.Read(p)
}
