package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// file is a member of an archive.
type file struct {
	mode    int64
	content []byte
}

// tarball packs files by path. The same files and time give the same bytes.
func tarball(files map[string]file, made time.Time) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: f.mode, Size: int64(len(f.content)), ModTime: made}
		if err := t.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := t.Write(f.content); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	err = errors.Join(t.Close(), z.Close())
	return out.Bytes(), err
}

// zipped is tarball in the format that Windows opens. It has no times before 1980.
func zipped(files map[string]file, made time.Time) ([]byte, error) {
	if first := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC); made.Before(first) {
		made = first
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: made.UTC()})
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := w.Write(files[name].content); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	err := z.Close()
	return out.Bytes(), err
}
