package recipe

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/gpuslice/gpuslice/test/cluster"
)

// options are for this machine's images of this checkout, or skip the test.
func options(t *testing.T) Options {
	t.Helper()
	if !cluster.Wanted("images") {
		t.Skip("builds the images: set GPUSLICE_TEST=images to run it, with a C compiler and, for the first time, apt-get")
	}
	checkout, err := Checkout()
	if err != nil {
		t.Fatal(err)
	}
	cache, environment, err := cluster.BuildSettings()
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Checkout: checkout, Out: t.TempDir(), Cache: filepath.Join(cache, "images"), Environment: environment,
		Repository: "gpuslice", Version: "v0.0.0-test", Revision: "0123abc", Newest: true, Say: t.Logf,
		Platforms: []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}},
	}
}

func TestBuiltImages(t *testing.T) {
	images, err := Build(t.Context(), options(t), Recipes()...)
	if err != nil {
		t.Fatal(err)
	}
	for n, r := range Recipes() {
		t.Run(r.Name, func(t *testing.T) {
			image := only(t, images[n])
			files := filesOf(t, image)
			t.Run("files", func(t *testing.T) { checkFiles(t, r, files) })
			for _, program := range append(r.Brings, r) {
				t.Run("program "+program.Name, func(t *testing.T) { checkProgram(t, program, files) })
			}
			t.Run("settings", func(t *testing.T) { checkSettings(t, r, image) })
			t.Run("document", func(t *testing.T) { checkDocument(t, r, images[n]) })
			for platform, size := range images[n].Sizes {
				t.Logf("%s is %.1f MiB compressed", platform, float64(size)/(1<<20))
				limit := int64(16 << 20) // every node that shares GPUs pulls guard and agent
				if r.Name == "cli" {
					limit = 24 << 20 // "helm test" pulls it, to one node
				}
				if size > limit {
					t.Errorf("%s is %d bytes: at most %d", platform, size, limit)
				}
			}
		})
	}
}

// only returns the one image of a layout.
func only(t *testing.T, i Image) v1.Image {
	t.Helper()
	root, err := layout.ImageIndexFromPath(i.Layout)
	if err != nil {
		t.Fatal(err)
	}
	index, err := root.ImageIndex(i.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	list, err := index.IndexManifest()
	if err != nil || len(list.Manifests) != 1 {
		t.Fatalf("it lists %+v, %v", list, err)
	}
	image, err := index.Image(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// filesOf returns the headers and content of all that is in an image but folders.
func filesOf(t *testing.T, image v1.Image) map[string]file {
	t.Helper()
	files := map[string]file{}
	for in := tar.NewReader(mutate.Extract(image)); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeDir {
			files["/"+h.Name] = file{h, content}
		}
	}
}

type file struct {
	*tar.Header
	content []byte
}

// checkFiles lists all files but licences: a new one is a line in this test.
func checkFiles(t *testing.T, r Recipe, files map[string]file) {
	var got []string
	for path, f := range files {
		if f.Typeflag != tar.TypeSymlink && f.Mode&0o6022 != 0 || f.Uid != 0 || f.Gid != 0 {
			t.Errorf("%s has mode %#o and belongs to %d:%d", path, f.Mode, f.Uid, f.Gid)
		}
		if !strings.HasPrefix(path, "/usr/share/licenses/") {
			got = append(got, strings.NewReplacer("x86_64", "CPU", "x86-64", "CPU", "aarch64", "CPU", ".so.2", ".so.N",
				"CPU.so.1", "CPU.so.N", "/lib64/", "/lib/").Replace(path))
		}
	}
	want := []string{"/etc/group", "/etc/passwd", r.Program}
	if r.LoadsDriver {
		want = append(want, "/etc/debian_version", "/etc/ld.so.conf", "/etc/ld.so.conf.d/CPU-linux-gnu.conf", "/etc/os-release",
			"/lib/CPU-linux-gnu/ld-linux-CPU.so.N", "/lib/ld-linux-CPU.so.N", "/usr/share/doc/libc6/copyright", "/var/lib/dpkg/status.d/libc6",
			"/lib/CPU-linux-gnu/libc.so.6", "/lib/CPU-linux-gnu/libdl.so.N", "/lib/CPU-linux-gnu/libm.so.6",
			"/lib/CPU-linux-gnu/libpthread.so.0", "/lib/CPU-linux-gnu/librt.so.1")
	}
	for _, beside := range r.Brings {
		want = append(want, beside.Program)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got)\n%s", diff)
	}
	for _, module := range []string{"std", own, "github.com/prometheus/client_golang"} {
		if _, ok := files["/usr/share/licenses/"+module+"/LICENSE"]; !ok {
			t.Errorf("the licence of %s is missing", module)
		}
	}
}

// checkProgram says whether the program can start: the webhook's without any library.
func checkProgram(t *testing.T, r Recipe, files map[string]file) {
	program, err := elf.NewFile(bytes.NewReader(files[r.Program].content))
	if err != nil {
		t.Fatal(err)
	}
	loader := ""
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			text, err := io.ReadAll(p.Open())
			if err != nil {
				t.Fatal(err)
			}
			loader = strings.TrimRight(string(text), "\x00")
		}
	}
	if !r.LoadsDriver && loader != "" {
		t.Errorf("it is not static: it is loaded by %s", loader)
	}
	if _, ok := files[loader]; r.LoadsDriver && !ok {
		t.Errorf("its loader %q is not in the image", loader)
	}
	if checkout, err := Checkout(); err != nil || bytes.Contains(files[r.Program].content, []byte(checkout+"/")) {
		t.Errorf("the program names the folder it was compiled in (%v)", err)
	}
}

func checkSettings(t *testing.T, r Recipe, image v1.Image) {
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{r.Program}) ||
		len(c.Cmd) > 0 || len(c.Env) > 0 || config.Created.Unix() != 0 {
		t.Errorf("settings %+v, made %s", c, config.Created)
	}
	want := map[string]string{"source": "https://github.com/gpuslice/gpuslice", "version": "v0.0.0-test", "revision": "0123abc"}
	for name, value := range want {
		if key := "org.opencontainers.image." + name; c.Labels[key] != value || manifest.Annotations[key] != value {
			t.Errorf("label %s is %q, annotation %q, want %q", key, c.Labels[key], manifest.Annotations[key], value)
		}
	}
	if got := c.Labels["org.opencontainers.image.licenses"]; !strings.HasPrefix(got, "Apache-2.0") {
		t.Errorf("licences are %q", got)
	}
}

func checkDocument(t *testing.T, r Recipe, i Image) {
	if len(i.Documents) != 1 {
		t.Fatalf("there are the documents %q", i.Documents)
	}
	f, err := os.Open(i.Documents[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := json.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(doc); err != nil {
		t.Error(err)
	}
	licences := map[string]string{}
	for _, p := range doc.Packages {
		licences[p.PackageName] = p.PackageLicenseDeclared
		if p.PackageLicenseDeclared == "NOASSERTION" && p.PackageName != "gpuslice/"+r.Name {
			t.Errorf("the licence of %s is not known", p.PackageName)
		}
	}
	want := map[string]string{own + strings.TrimPrefix(r.Package, "."): "Apache-2.0", "std": "BSD-3-Clause",
		"github.com/prometheus/client_golang": "Apache-2.0"}
	if r.LoadsDriver {
		want["libc6"] = "LGPL-2.1-or-later"
	}
	for name, licence := range want {
		if licences[name] != licence {
			t.Errorf("the licence of %s is %q, want %q", name, licences[name], licence)
		}
	}
}
