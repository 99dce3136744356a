package images

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/debian"
)

// version is that of the images.
const version = "v0.0.0-test"

// builder is Debian's buildah, with storage and settings of the test alone.
type builder struct {
	checkout, program string
	env               []string
}

// newBuilder returns the machine's buildah, which it installs where there is none: it starts itself again without its environment, so
// that one beside the machine's libraries does not run.
func newBuilder(t *testing.T) builder {
	t.Helper()
	if !cluster.Wanted("images") {
		t.Skip("builds the images: set GPUSLICE_TEST=images to run it, as root, with a C compiler and apt-get")
	}
	if os.Getuid() != 0 {
		t.Skip("runs programs of the images by chroot, which takes root")
	}
	caches, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir, cache := t.TempDir(), strings.Fields(string(caches)) // buildah gets a HOME of its own, and Go keeps its caches
	b := builder{env: append(os.Environ(), "HOME="+dir, "GOCACHE="+cache[0], "GOMODCACHE="+cache[1],
		"BUILDAH_ISOLATION=chroot", "CONTAINERS_STORAGE_CONF="+filepath.Join(dir, "storage.conf"))}
	if b.checkout, err = cluster.Checkout(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "storage.conf"), "[storage]\ndriver = \"vfs\"\ngraphroot = \""+dir+"/graph\"\nrunroot = \""+dir+"/run\"\n")
	write(t, filepath.Join(dir, ".config/containers/policy.json"), `{"default": [{"type": "insecureAcceptAnything"}]}`)
	if _, err := exec.LookPath("buildah"); err != nil {
		install := exec.CommandContext(t.Context(), "sh", "-c", "apt-get update -q && apt-get install -q --yes --no-install-recommends buildah")
		install.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := install.CombinedOutput(); err != nil {
			t.Skipf("there is no buildah, and Debian's cannot be had: %v\n%s", err, out)
		}
	}
	b.program, err = exec.LookPath("buildah")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs a program in the checkout and returns what it prints on standard output.
func (b builder) run(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var said strings.Builder
	cmd.Dir, cmd.Env, cmd.Stderr = b.checkout, b.env, &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(program), args[0], err, out, said.String())
	}
	return strings.TrimSpace(string(out))
}

// makeBases makes the images that the Dockerfile begins with, under their names: what they hold beside these packages is for others.
func (b builder) makeBases(t *testing.T) {
	t.Helper()
	for name, packages := range map[string][]string{
		"gcr.io/distroless/static-debian13:nonroot":     {"base-files"},
		"gcr.io/distroless/base-nossl-debian13:nonroot": {"base-files", "libc6"},
	} {
		folder := t.TempDir()
		for _, p := range packages {
			if err := debian.Download(t.Context(), filepath.Join(folder, "root"), p); err != nil {
				t.Skipf("Debian's packages cannot be had: %v", err)
			}
		}
		write(t, filepath.Join(folder, "Dockerfile"), "FROM scratch\nCOPY root /\n")
		b.run(t, b.program, "build", "--tag", name, folder)
	}
}

// TestImages builds the images by "make images", as users do.
func TestImages(t *testing.T) {
	b := newBuilder(t)
	b.makeBases(t)
	// buildah asks no registry for a base that is there.
	b.run(t, "make", "images", "BUILDER="+b.program, "VERSION="+version, "BUILDFLAGS=--pull-never")
	for name, programs := range map[string][]string{
		"webhook": {"gpuslice-webhook"}, "agent": {"gpuslice-agent"}, "cli": {"gpuslice"},
		"guard": {
			"gpuslice-guard", "gpuslice-exec",
			"gpuslice-prove",
		},
	} {
		t.Run(name, func(t *testing.T) {
			from := "gpuslice/" + name + ":" + version
			b.checkSettings(t, from, name, "/"+programs[0])
			container := b.run(t, b.program, "from", "--pull-never", from)
			b.checkFiles(t, b.run(t, b.program, "mount", container), programs)
		})
	}
}

// checkSettings holds what a pod gets that does not say more.
func (b builder) checkSettings(t *testing.T, image, name, entrypoint string) {
	var got struct {
		OCIv1 struct {
			Config struct {
				User       string
				Entrypoint []string
				Labels     map[string]string
			}
		}
	}
	if err := json.Unmarshal([]byte(b.run(t, b.program, "inspect", "--type", "image", image)), &got); err != nil {
		t.Fatal(err)
	}
	c := got.OCIv1.Config
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{entrypoint}) {
		t.Errorf("settings %+v", c)
	}
	for label, want := range map[string]string{"title": "gpuslice-" + name, "version": version,
		"source": "https://github.com/gpuslice/gpuslice", "revision": b.run(t, "git", "rev-parse", "HEAD")} {
		if got := c.Labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
	if c.Labels["org.opencontainers.image.description"] == "" ||
		!strings.HasPrefix(c.Labels["org.opencontainers.image.licenses"], "Apache-2.0") {
		t.Errorf("labels %v", c.Labels)
	}
}

// checkFiles holds that the programs, and no others of ours, are in an image, run as its user, and have their licenses with them.
func (b builder) checkFiles(t *testing.T, root string, programs []string) {
	found, err := filepath.Glob(filepath.Join(root, "gpuslice*"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range found {
		found[n] = filepath.Base(found[n])
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(programs)), found); diff != "" {
		t.Errorf("programs (-want +got)\n%s", diff)
	}
	for _, module := range []string{"std", "github.com/gpuslice/gpuslice", "github.com/prometheus/client_golang"} {
		if _, err := os.Stat(filepath.Join(root, "usr/share/licenses", module, "LICENSE")); err != nil {
			t.Errorf("the license of %s is missing: %v", module, err)
		}
	}
	for _, p := range programs {
		command := []string{"/" + p, "--version"}
		if p == "gpuslice-exec" { // it has no version: it runs another program
			command = []string{"/gpuslice-exec", "/gpuslice-guard", "--version"}
		}
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Path, cmd.Err, cmd.Env = command[0], nil, []string{} // looked up in the image
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), version) {
			t.Errorf("%s says %q (%v)", strings.Join(command, " "), out, err)
		}
	}
}

// TestNoBuilder: where no builder is, "make images" says what to install before it compiles anything.
func TestNoBuilder(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "make", "--directory=../..", "images", "BUILDER=gpuslice-has-no-such-builder")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "start Docker, or install podman or buildah") ||
		strings.Contains(string(out), "go build") {
		t.Errorf("%v\n%s", err, out)
	}
}
