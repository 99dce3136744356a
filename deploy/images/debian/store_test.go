package debian

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLock(t *testing.T) {
	t.Parallel()
	t.Run("is written as it is read", func(t *testing.T) {
		t.Parallel()
		l, err := Locked()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(locked), l.String()); diff != "" {
			t.Errorf("libc6.yaml (-want +got)\n%s", diff)
		}
		if got := slices.Sorted(maps.Keys(l.SHA256)); !slices.Equal(got, Architectures()) {
			t.Errorf("it names %q, and images are built for %q", got, Architectures())
		}
	})
	t.Run("an architecture without a package is an error", func(t *testing.T) {
		t.Parallel()
		if _, err := (Store{Say: t.Logf}).Find(t.Context(), Lock{Version: "2.0"}, "s390x"); err == nil ||
			!strings.Contains(err.Error(), "s390x") {
			t.Errorf("got %v", err)
		}
	})
}

// offer puts an apt-get in the way of the machine's that knows only the given version, and not without lists of its own.
func offer(t *testing.T, version string) {
	t.Helper()
	bin := t.TempDir()
	script := fmt.Sprintf(`#!/bin/sh
case "$*" in
*Dir::State::lists=*update) ;;
*Dir::State::lists=*"download libc6:arm64" | *Dir::State::lists=*"download libc6:arm64=%[1]s") echo the package > libc6_%[1]s_arm64.deb ;;
*) echo "E: Version for 'libc6' was not found" >&2; exit 100 ;;
esac
`, version)
	if err := os.WriteFile(filepath.Join(bin, "apt-get"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
}

// sum is the digest of what offer's apt-get brings.
const sum = "8ca6b28d54e0a1a3ad22cf5c9aac3b91a71bb0ef6d4a8f1c2ff3d65fa9fd1b0d"

func TestPackage(t *testing.T) {
	t.Run("is the locked one", func(t *testing.T) {
		right := digestOf(t, "the package\n")
		for _, tt := range []struct {
			name, offered, digest string
			newest                bool
			debs                  string // what lies in the folder of packages
			want, wantErr         string
		}{
			{name: "apt-get has it", offered: "2.0", digest: right, want: "2.0"},
			{name: "it lies in the folder that was named", offered: "1.0", digest: right, debs: "the package\n", want: "2.0"},
			{name: "what lies there is another", offered: "2.0", digest: right, debs: "not the package\n", wantErr: "libc6.yaml wants " + right},
			{name: "apt-get brings another", offered: "2.0", digest: sum, wantErr: "libc6.yaml wants " + sum},
			{name: "Debian has a newer one only", offered: "3.0", digest: right, wantErr: "go run ./deploy/images lock"},
			{name: "and a newer one is taken", offered: "3.0", digest: right, newest: true, want: "3.0"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				offer(t, tt.offered)
				s := Store{Cache: t.TempDir(), Newest: tt.newest, Say: t.Logf}
				if tt.debs != "" {
					s.Debs = t.TempDir()
					if err := os.WriteFile(filepath.Join(s.Debs, "libc6_2.0_arm64.deb"), []byte(tt.debs), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				p, err := s.Find(t.Context(), Lock{Version: "2.0", SHA256: map[string]string{"arm64": tt.digest}}, "arm64")
				if tt.wantErr != "" {
					if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
						t.Errorf("got %v, want an error with %q", err, tt.wantErr)
					}
					return
				}
				if err != nil || p.Version != tt.want || p.SHA256 != right {
					t.Errorf("got %+v, %v", p, err)
				}
			})
		}
	})
}

func digestOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := digest(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// pack makes a package with Debian's own tool.
func pack(t *testing.T, paths ...string) Package {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("needs dpkg-deb, of Debian's package dpkg")
	}
	root := t.TempDir()
	for _, path := range append(paths, "/DEBIAN/control") {
		at := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at,
			[]byte("Package: libc6\nVersion: 2.0\nArchitecture: arm64\nMaintainer: nobody <n@example.test>\nDescription: for a test\n"),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	deb := filepath.Join(t.TempDir(), "libc6.deb")
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--build", "--root-owner-group", root, deb).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return Package{Path: deb}
}

func TestLibraries(t *testing.T) {
	t.Parallel()
	t.Run("the image takes the libraries and their licenses", func(t *testing.T) {
		t.Parallel()
		paths := []string{"/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1",
			"/etc/ld.so.conf.d/aarch64-linux-gnu.conf", "/usr/share/doc/libc6/copyright"}
		for _, l := range Libraries() {
			paths = append(paths, "/lib/aarch64-linux-gnu/"+l)
		}
		p := pack(t, append(paths, "/lib/aarch64-linux-gnu/libnsl.so.1",
			"/usr/lib/aarch64-linux-gnu/gconv/EUC-JP.so", "/usr/share/doc/libc6/changelog.gz")...)
		files, err := p.Files(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(paths)), slices.Sorted(maps.Keys(files))); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if control, err := p.Control(t.Context()); err != nil || !bytes.Contains([]byte(control), []byte("Package: libc6\n")) {
			t.Errorf("it says of itself %q, %v", control, err)
		}
	})
	t.Run("a package without a library is an error", func(t *testing.T) {
		t.Parallel()
		if _, err := pack(t, "/lib/libc.so.6", "/usr/share/doc/libc6/copyright").Files(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "libdl.so.2") {
			t.Errorf("got %v", err)
		}
	})
}
