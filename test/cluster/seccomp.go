package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gpuslice/gpuslice/test/debian"
)

// libseccomp returns the program by which cgo finds libseccomp's header and static library: the machine's
// pkg-config where that knows them, else a script that names the unpacked Debian package in the cache,
// which is fetched if need be. Nothing is installed.
func (b *builder) libseccomp(ctx context.Context) (string, error) {
	if folder, err := exec.CommandContext(ctx, "pkg-config", "--variable=libdir", "libseccomp").Output(); err == nil {
		if _, err := os.Stat(filepath.Join(strings.TrimSpace(string(folder)), "libseccomp.a")); err == nil {
			return "pkg-config", nil
		}
	}
	root := filepath.Join(b.cache, "libseccomp-dev")
	unlock, err := lockFile(ctx, root+".lock", func() { b.report.say("waiting for another download of libseccomp-dev") })
	if err != nil {
		return "", err
	}
	defer unlock()
	finder := filepath.Join(root, "pkg-config")
	if _, err := os.Stat(finder); err == nil {
		return finder, nil
	}
	step := b.report.begin("fetching Debian's libseccomp-dev")
	err = fetchSeccomp(ctx, root)
	step.end(err)
	return finder, err
}

// fetchSeccomp unpacks the package at root and writes the script beside it.
func fetchSeccomp(ctx context.Context, root string) error {
	part := root + ".part"
	if err := errors.Join(os.RemoveAll(part), os.RemoveAll(root), os.MkdirAll(part, 0o755)); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer os.RemoveAll(part)
	if err := debian.Download(ctx, part, "libseccomp-dev"); err != nil {
		return fmt.Errorf("fetch libseccomp (without Debian: install its header and static library): %w", err)
	}
	archives, err := filepath.Glob(part + "/usr/lib/*/libseccomp.a")
	if err != nil || len(archives) != 1 {
		return fmt.Errorf("libseccomp-dev holds %d static libraries (%v), want one", len(archives), err)
	}
	at := func(path string) string { return filepath.Join(root, strings.TrimPrefix(path, part)) }
	script := fmt.Sprintf("#!/bin/sh\ncase $1 in\n--cflags) echo -I%s ;;\n--libs) echo -L%s -lseccomp ;;\nesac\n",
		at(part+"/usr/include"), at(filepath.Dir(archives[0])))
	if err := os.WriteFile(filepath.Join(part, "pkg-config"), []byte(script), 0o755); err != nil {
		return fmt.Errorf("write pkg-config stand-in: %w", err)
	}
	if err := os.Rename(part, root); err != nil {
		return fmt.Errorf("keep libseccomp-dev: %w", err)
	}
	return nil
}
