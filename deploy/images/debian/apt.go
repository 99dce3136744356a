package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// download fetches a version, or with "" the newest, into the cache.
func (s Store) download(ctx context.Context, version, arch string) (Package, error) {
	if err := os.MkdirAll(s.Cache, 0o755); err != nil {
		return Package{}, fmt.Errorf("make cache of packages: %w", err)
	}
	dir, err := os.MkdirTemp(s.Cache, "download-")
	if err != nil {
		return Package{}, fmt.Errorf("make cache of packages: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := aptDownload(ctx, dir, version, arch); err != nil {
		return Package{}, err
	}
	found, err := filepath.Glob(filepath.Join(dir, name+"_*_"+arch+".deb"))
	if err != nil || len(found) != 1 {
		return Package{}, fmt.Errorf("apt-get left %d packages (%v), want one", len(found), err)
	}
	// Its name, without the package's and the architecture's, is the version.
	version = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), name+"_"), "_"+arch+".deb")
	p := Package{Path: filepath.Join(s.Cache, filepath.Base(found[0])), Version: version, Architecture: arch}
	if err := os.Rename(found[0], p.Path); err != nil {
		return p, fmt.Errorf("keep package: %w", err)
	}
	return p, nil
}

// aptDownload tries the machine's own package lists first. They know no other architecture, on a bare machine nothing
// at all, and may be old: then lists of our own are fetched into dir, from the machine's sources.
func aptDownload(ctx context.Context, dir, version, arch string) error {
	wanted := name + ":" + arch
	if version != "" {
		wanted += "=" + version
	}
	if version != "" && aptGet(ctx, dir, "download", wanted) == nil {
		return nil
	}
	own := []string{"-o", "Dir::State::lists=" + filepath.Join(dir, "lists"), "-o", "Dir::Cache=" + filepath.Join(dir, "cache"),
		"-o", "Dir::State::status=/dev/null", "-o", "APT::Architecture=" + arch, "-o", "Acquire::Languages=none"}
	if err := os.MkdirAll(filepath.Join(dir, "lists", "partial"), 0o755); err != nil {
		return fmt.Errorf("make folder of package lists: %w", err)
	}
	// An update fails where one of several sources does, which need not be the one that has the package.
	failed := aptGet(ctx, dir, append(own, "update")...)
	if err := aptGet(ctx, dir, append(own, "download", wanted)...); err != nil {
		return errors.Join(err, failed)
	}
	return nil
}

func aptGet(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run apt-get %s: %w\n%s", args[len(args)-1], err, out)
	}
	return nil
}
