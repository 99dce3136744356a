package debian

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const name = "libc6"

// Store finds packages: in a folder of the user's, in the cache, or through apt-get.
type Store struct {
	// Debs is a folder with packages; "" for none.
	Debs string
	// Cache is a folder of ours.
	Cache string
	// Newest takes the version that apt-get offers where the locked one is not to be had. The images then differ from
	// those that others build.
	Newest bool
	// Say reports slow steps, and packages that differ from the lock.
	Say func(format string, args ...any)
}

// Package is a package's file.
type Package struct {
	Path, Version, Architecture, SHA256 string
}

// Find returns the package for an architecture that lock names.
func (s Store) Find(ctx context.Context, lock Lock, arch string) (Package, error) {
	want := Package{Version: lock.Version, Architecture: arch, SHA256: lock.SHA256[arch]}
	if want.SHA256 == "" {
		return want, fmt.Errorf("libc6.yaml has no %s for %s: it has %s", name, arch, strings.Join(Architectures(), ", "))
	}
	for _, folder := range []string{s.Debs, s.Cache} {
		if folder == "" {
			continue
		}
		want.Path = filepath.Join(folder, fileName(want.Version, arch))
		switch err := want.verify(); {
		case err == nil:
			return want, nil
		case !errors.Is(err, fs.ErrNotExist):
			return want, err
		}
	}
	s.Say("fetching %s %s for %s", name, lock.Version, arch)
	got, err := s.download(ctx, lock.Version, arch)
	if err == nil {
		got.SHA256 = want.SHA256
		return got, got.verify()
	}
	if !s.Newest {
		return want, fmt.Errorf("%w\nDebian's mirrors keep only the newest version of a package. Get %s from Debian's snapshot archive and name its folder with --debs, "+
			"or take the newest into libc6.yaml: go run ./deploy/images lock", err, fileName(lock.Version, arch))
	}
	newest, again := s.Latest(ctx, arch)
	if again != nil {
		return want, errors.Join(err, again)
	}
	s.Say("%s %s is not to be had: taking %s, with which the images are not those of libc6.yaml", name, lock.Version, newest.Version)
	return newest, nil
}

// Latest returns the newest package for an architecture that apt-get offers.
func (s Store) Latest(ctx context.Context, arch string) (Package, error) {
	p, err := s.download(ctx, "", arch)
	if err != nil {
		return p, err
	}
	p.SHA256, err = digest(p.Path)
	return p, err
}

// verify returns an error unless the file is the one that the digest names.
func (p Package) verify() error {
	got, err := digest(p.Path)
	if err != nil {
		return err
	}
	if got != p.SHA256 {
		return fmt.Errorf("%s has the SHA-256 digest %s, and libc6.yaml wants %s", p.Path, got, p.SHA256)
	}
	return nil
}

// fileName is Debian's name of the file: an epoch, which the name leaves out, libc6 has none.
func fileName(version, arch string) string { return fmt.Sprintf("%s_%s_%s.deb", name, version, arch) }

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read package: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read package: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
