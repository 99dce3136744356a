package debian

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/deploy/images/oci"
)

// Libraries returns the names of the image's libraries: those that a program needs to call the C library, and those
// that the driver's library loads. The C library's own loader is one more.
func Libraries() []string {
	return []string{"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1"}
}

// Files returns the image's part of the package: the libraries, their loader, its search path, and the licences.
func (p Package) Files(ctx context.Context) (map[string]oci.File, error) {
	packed, err := dpkgDeb(ctx, "--fsys-tarfile", p.Path)
	if err != nil {
		return nil, err
	}
	all, err := unpack(packed)
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", p.Path, err)
	}
	files := map[string]oci.File{}
	for at, f := range all {
		if wanted(at) {
			files[at] = f
		}
	}
	for _, l := range append(Libraries(), "ld-linux") {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(at string) bool { return strings.HasPrefix(path.Base(at), l) }) {
			return nil, fmt.Errorf("%s holds no %s", p.Path, l)
		}
	}
	return files, nil
}

// Control returns the package's own description, which scanners for vulnerabilities read.
func (p Package) Control(ctx context.Context) (string, error) {
	out, err := dpkgDeb(ctx, "-f", p.Path)
	return string(out), err
}

func wanted(at string) bool {
	dir, file := path.Split(at)
	return slices.Contains(Libraries(), file) || strings.HasPrefix(file, "ld-linux") ||
		dir == "/etc/ld.so.conf.d/" || at == "/usr/share/doc/"+name+"/copyright"
}

func dpkgDeb(ctx context.Context, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, "dpkg-deb", args...).Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf(
			"unpack Debian's package of the C library: %w (it comes with the package dpkg, which other distributions have too)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("run dpkg-deb %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// unpack returns the files and links of an archive.
func unpack(packed []byte) (map[string]oci.File, error) {
	files := map[string]oci.File{}
	in := tar.NewReader(bytes.NewReader(packed))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		at := path.Join("/", h.Name)
		switch h.Typeflag {
		case tar.TypeReg:
			content, err := io.ReadAll(in)
			if err != nil {
				return nil, err
			}
			files[at] = oci.File{Mode: fs.FileMode(h.Mode).Perm(), Content: content}
		case tar.TypeSymlink:
			files[at] = oci.File{Mode: fs.ModeSymlink | 0o777, Content: []byte(h.Linkname)}
		}
	}
}
