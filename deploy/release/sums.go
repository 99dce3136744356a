package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// sumsFile is the one that the signature is of: it holds all others.
const sumsFile = "SHA256SUMS"

func (w *work) writeSums(context.Context) error {
	sums, err := sums(w.dir)
	if err != nil {
		return err
	}
	out := ""
	for _, s := range sums {
		out += s.sha256 + "  " + s.name + "\n"
	}
	return w.write(sumsFile, []byte(out))
}

// sum is a file with its digest in hexadecimal.
type sum struct{ name, sha256 string }

// sums are those of all files at the top of a folder.
func sums(dir string) (all []sum, err error) {
	names, err := flat(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		all = append(all, sum{name, fmt.Sprintf("%x", h.Sum(nil))})
	}
	return all, nil
}
