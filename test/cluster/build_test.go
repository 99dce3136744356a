package cluster

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// testBuilder builds from a module with one small program, and a target for it.
func testBuilder(t *testing.T, progress io.Writer, source string) (*builder, Target) {
	t.Helper()
	modules := t.TempDir()
	files := map[string]string{
		"kubernetes/go.mod":  "module example.test/m\n",
		"small/go.mod":       "module example.test/small\n\ngo 1.26.0\n\nrequire (\n\texample.test/dep v1.2.3\n)\n",
		"small/prog/main.go": source,
	}
	for name, text := range files {
		path := filepath.Join(modules, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b := &builder{modules: modules, cache: t.TempDir(), goVersion: "go1.26", env: goEnvironment(t.TempDir()), report: newReporter(progress)}
	return b, Target{name: "prog", module: "small", packages: []string{"./prog"}, links: []string{"other"}}
}

const hello = "package main\n\nfunc main() { println(\"hello\") }\n"

func TestBuild(t *testing.T) {
	t.Parallel()
	t.Run("two at once compile once", func(t *testing.T) {
		t.Parallel()
		var said syncBuffer
		b, target := testBuilder(t, &said, hello)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				dir, err := b.ensure(t.Context(), target)
				if err != nil {
					t.Error(err)
					return
				}
				for _, name := range []string{"prog", "other"} {
					if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		both.Wait()
		if n := strings.Count(said.String(), "building prog: done"); n != 1 {
			t.Errorf("compiled %d times, want once; said:\n%s", n, &said)
		}
	})
}

func TestBuildFailed(t *testing.T) {
	t.Parallel()
	t.Run("reports the reason and leaves nothing", func(t *testing.T) {
		t.Parallel()
		b, target := testBuilder(t, io.Discard, "package main\n\nfunc main() { undefined() }\n")
		_, err := b.ensure(t.Context(), target)
		if err == nil || !strings.Contains(err.Error(), "main.go:3:15: undefined: undefined") {
			t.Errorf("got error %v, want the compiler's message", err)
		}
		left, err := filepath.Glob(b.cache + "/prog-*[^k]") // all but the lock
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	})
}

func TestKey(t *testing.T) {
	t.Parallel()
	t.Run("follows what is built", func(t *testing.T) {
		t.Parallel()
		b, target := testBuilder(t, io.Discard, hello)
		dir := filepath.Join(b.modules, "small")
		key := func(args []string, version string) string {
			t.Helper()
			k, err := target.key(dir, args, version)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		first := key(nil, "go1.26")
		if again := key(nil, "go1.26"); again != first {
			t.Errorf("the key changes by itself: %s, %s", first, again)
		}
		if key([]string{"-x"}, "go1.26") == first || key(nil, "go1.27") == first {
			t.Error("the key does not follow arguments and Go version")
		}
		if err := os.WriteFile(filepath.Join(dir, "go.sum"), []byte("changed"), 0o644); err != nil {
			t.Fatal(err)
		}
		if key(nil, "go1.26") == first {
			t.Error("the key does not follow the module's files")
		}
	})
}

func TestVersionStamp(t *testing.T) {
	t.Parallel()
	t.Run("comes from the module", func(t *testing.T) {
		t.Parallel()
		b, target := testBuilder(t, io.Discard, hello)
		dir := filepath.Join(b.modules, "small")
		target.stamp = map[string]string{"pkg.Version": "example.test/dep"}
		args, err := target.args(dir)
		if err != nil || !strings.Contains(strings.Join(args, " "), "-X pkg.Version=v1.2.3") {
			t.Errorf("args = %q, %v", args, err)
		}
		target.stamp = map[string]string{"pkg.Version": "example.test/none"}
		if _, err := target.args(dir); err == nil {
			t.Error("a version that the module does not require is no error")
		}
	})
}

func TestProgressWithoutTerminal(t *testing.T) {
	t.Parallel()
	var said syncBuffer
	r := newReporter(&said)
	r.every = time.Millisecond
	s := r.begin("building it")
	s.note("k8s.io/api/core/v1")
	await(t, "line that names the package", func() bool {
		return strings.Contains(said.String(), "building it: 1 packages, k8s.io/api/core/v1")
	})
	s.end(errors.New("no"))
	if got := said.String(); !strings.HasSuffix(got, "building it: failed\n") || strings.Contains(got, "\r") {
		t.Errorf("said:\n%q", got)
	}
}

// syncBuffer is a bytes.Buffer for several goroutines.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestCompile(t *testing.T) {
	t.Parallel()
	t.Run("builds a program of the checkout", func(t *testing.T) {
		t.Parallel()
		out := filepath.Join(t.TempDir(), "pause")
		if err := Compile(t.Context(), Program{Package: "./test/cluster/cmd/pause"}, out); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(out); err != nil || st.Mode()&0o111 == 0 {
			t.Errorf("no program was made: %v", err)
		}
		err := Compile(t.Context(), Program{Package: "./test/cluster/cmd/none"}, out)
		if err == nil || !strings.Contains(err.Error(), "cmd/none") {
			t.Errorf("build of a program that does not exist: %v", err)
		}
	})
}
