package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Bin maps the name of a program to its absolute path.
type Bin map[string]string

// Build returns the programs of targets, compiling those that the cache lacks. The first build of the control plane
// compiles all of Kubernetes: minutes, and some 4 GiB in Go's own build cache. Each target has a folder of its own,
// named for a hash of its inputs, so that a stale one is never used; two builds at once wait for each other. Steps are
// reported on progress, to the second on a terminal.
func Build(ctx context.Context, progress io.Writer, targets ...Target) (Bin, error) {
	b, err := newBuilder(ctx, progress)
	if err != nil {
		return nil, err
	}
	bin := Bin{}
	for _, t := range targets {
		dir, err := b.ensure(ctx, t)
		if err != nil {
			return nil, err
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("list programs of %s: %w", t.name, err)
		}
		for _, e := range entries {
			bin[e.Name()] = filepath.Join(dir, e.Name())
		}
	}
	return bin, nil
}

// builder knows where modules come from and programs go to.
type builder struct {
	modules, cache string
	goVersion      string
	env            []string
	report         *reporter
}

func newBuilder(ctx context.Context, progress io.Writer) (*builder, error) {
	modules, err := modulesFolder()
	if err != nil {
		return nil, err
	}
	cache, err := cacheRoot()
	if err != nil {
		return nil, err
	}
	b := &builder{modules: modules, cache: filepath.Join(cache, "cluster"), env: goEnvironment(cache), report: newReporter(progress)}
	if err := os.MkdirAll(b.cache, 0o700); err != nil {
		return nil, fmt.Errorf("make cache: %w", err)
	}
	version := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	version.Dir, version.Env = modules, b.env
	out, err := version.Output()
	if err != nil {
		return nil, fmt.Errorf("run go (needed to build the test cluster): %w", err)
	}
	b.goVersion = strings.TrimSpace(string(out))
	return b, nil
}

// modulesFolder finds the build modules from the working folder upwards: go:embed takes no folder that
// has a go.mod of its own, so they are read from the checkout.
func modulesFolder() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find checkout: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		modules := filepath.Join(dir, "test", "cluster", "modules")
		if _, err := os.Stat(filepath.Join(modules, "kubernetes", "go.mod")); err == nil {
			return modules, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find test/cluster/modules above %s: run this inside a checkout of gpuslice", start)
		}
	}
}

// goEnvironment returns this process's environment with all variables that could change the output of go build set to
// fixed values, and with folders for Go's own caches where neither they nor HOME are set.
func goEnvironment(cache string) []string {
	env := append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "GOOS=", "GOARCH=", "CGO_ENABLED=0")
	if _, err := os.UserHomeDir(); err == nil {
		return env
	}
	for name, dir := range map[string]string{"GOCACHE": "go-build", "GOPATH": "go"} {
		if os.Getenv(name) == "" {
			env = append(env, name+"="+filepath.Join(cache, dir))
		}
	}
	return env
}

// ensure returns the folder that holds the programs of t and nothing else.
func (b *builder) ensure(ctx context.Context, t Target) (string, error) {
	module := filepath.Join(b.modules, t.module)
	args, err := t.args(module)
	if err != nil {
		return "", err
	}
	key, err := t.key(module, args, b.goVersion)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(b.cache, t.name+"-"+key)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	unlock, err := lockFile(ctx, dir+".lock", func() { b.report.say("waiting for another build of %s", t.name) })
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, b.make(ctx, t, dir, args)
}

// make compiles t beside dir and moves the result there in one step. The caller holds the lock of dir, so remains of a
// killed build beside it are nobody's.
func (b *builder) make(ctx context.Context, t Target, dir string, args []string) error {
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return fmt.Errorf("clear leftovers of %s: %w", t.name, err)
	}
	defer os.RemoveAll(part)
	if err := os.Mkdir(part, 0o755); err != nil {
		return fmt.Errorf("make folder of %s: %w", t.name, err)
	}
	if err := b.compile(ctx, t, part, args); err != nil {
		return err
	}
	for _, link := range t.links {
		if err := os.Symlink(t.name, filepath.Join(part, link)); err != nil {
			return fmt.Errorf("name %s: %w", link, err)
		}
	}
	if err := os.Rename(part, dir); err != nil {
		return fmt.Errorf("keep %s: %w", t.name, err)
	}
	return nil
}
