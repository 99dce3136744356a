package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gpuslice/gpuslice/test/child"
)

// compile runs go build for t into the folder out and reports each package as it goes by.
func (b *builder) compile(ctx context.Context, t Target, out string, args []string) error {
	output := out + "/"
	if len(t.packages) == 1 {
		output += t.name // go's own choice for etcd would be "server"
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-v", "-o", output}, args...)...)
	cmd.Dir = filepath.Join(b.modules, t.module)
	env, err := b.environment(ctx, t)
	if err != nil {
		return err
	}
	cmd.Env = env
	// The compilers are go's children: a group of their own lets all of them be stopped together.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

	lines, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	step := b.report.begin("building " + t.name)
	proc, err := child.Start(cmd)
	if err != nil {
		return fmt.Errorf("run go build for %s: %w", t.name, err)
	}
	go func() { w.CloseWithError(<-proc) }()
	said, err := follow(lines, step)
	step.end(err)
	if ctx.Err() != nil {
		return fmt.Errorf("build %s: %w", t.name, context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("build %s: %w\n%s", t.name, err, said)
	}
	return nil
}

// environment returns the environment of go build for t.
func (b *builder) environment(ctx context.Context, t Target) ([]string, error) {
	if !t.cgo && !t.seccomp {
		return b.env, nil
	}
	env := append(slices.Clone(b.env), "CGO_ENABLED=1")
	if !t.seccomp {
		return env, nil
	}
	finder, err := b.libseccomp(ctx)
	if err != nil {
		return nil, fmt.Errorf("find libseccomp for %s: %w", t.name, err)
	}
	return append(env, "PKG_CONFIG="+finder), nil
}

// follow reads the output of `go build -v` until it ends, passes package names and downloads to step, and returns the
// rest: the compiler's complaints. Its error is that of the process.
func follow(r io.Reader, step *step) (string, error) {
	var said strings.Builder
	in := bufio.NewScanner(r)
	for in.Scan() {
		line := in.Text()
		switch {
		case strings.HasPrefix(line, "go: downloading "):
			step.note(strings.TrimPrefix(line, "go: "))
		case strings.ContainsAny(line, " \t:#"):
			said.WriteString(line + "\n")
		default:
			step.note(line)
		}
	}
	return said.String(), in.Err()
}
