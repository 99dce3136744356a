// Package debian takes programs and libraries from Debian's packages without installing any: apt-get fetches them as the
// machine's own settings say, and dpkg unpacks them into a folder.
package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Unpack unpacks packages below dir, and with them their dependencies that the machine lacks.
func Unpack(ctx context.Context, dir string, names ...string) error {
	if err := os.MkdirAll(filepath.Join(dir, archives, "partial"), 0o755); err != nil {
		return fmt.Errorf("make folder for packages: %w", err)
	}
	install := append([]string{"--yes", "--download-only", "--no-install-recommends", "-o",
		"Dir::Cache::archives=" + filepath.Join(dir, archives),
		"-o", "Debug::NoLocking=true", "install"}, names...)
	return unpack(ctx, dir, archives, install)
}

// Download unpacks one package below dir, and nothing that it needs.
func Download(ctx context.Context, dir, name string) error {
	if err := os.MkdirAll(filepath.Join(dir, archives), 0o755); err != nil {
		return fmt.Errorf("make folder for package: %w", err)
	}
	return unpack(ctx, dir, archives, []string{"download", name})
}

// Folders below that of a package, which are gone in the end.
const (
	archives = "archives"
	lists    = "lists"
)

// unpack fetches packages into a folder below dir and unpacks them.
func unpack(ctx context.Context, dir, folder string, fetch []string) error {
	if err := withLists(ctx, dir, fetch); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(dir, folder, "*.deb"))
	if err != nil || len(debs) == 0 {
		return fmt.Errorf("apt-get fetched no package (%v)", err)
	}
	for _, deb := range debs {
		if out, err := exec.CommandContext(ctx, "dpkg", "-x", deb, dir).CombinedOutput(); err != nil {
			return fmt.Errorf("unpack %s: %w\n%s", filepath.Base(deb), err, out)
		}
	}
	for _, scratch := range []string{folder, lists, "cache"} {
		if err := os.RemoveAll(filepath.Join(dir, scratch)); err != nil {
			return fmt.Errorf("remove packages: %w", err)
		}
	}
	return nil
}

// withLists runs apt-get. Where the machine has no package lists (a bare container image) it fetches some into dir and
// leaves the machine's alone.
func withLists(ctx context.Context, dir string, args []string) error {
	first := aptGet(ctx, dir, args...)
	if first == nil {
		return nil
	}
	own := []string{"-o", "Dir::State::lists=" + filepath.Join(dir, lists), "-o", "Dir::Cache=" + filepath.Join(dir, "cache")}
	if err := os.MkdirAll(filepath.Join(dir, lists, "partial"), 0o755); err != nil {
		return fmt.Errorf("make folder for package lists: %w", err)
	}
	if err := aptGet(ctx, dir, append(own, "update")...); err != nil {
		return errors.Join(first, err)
	}
	return aptGet(ctx, dir, append(own, args...)...)
}

func aptGet(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q"}, args...)...)
	cmd.Dir = filepath.Join(dir, archives)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run apt-get %s: %w\n%s", args[len(args)-1], err, out)
	}
	return nil
}
