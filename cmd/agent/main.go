package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gpuslice/gpuslice/cmd/component"
)

func main() {
	component.Main(func(ctx context.Context) int {
		return execute(ctx, os.Args[1:], os.Stdout, os.Stderr, os.LookupEnv, run)
	})
}

// version is stamped by the linker: -X main.version=v0.1.0.
var version = "devel"

const longHelp = `Enforce the GPU memory slices of every pod of this node.

The agent needs the node's PID namespace, UID 0 with the capability KILL, NVML, and the pods of its node from the API
server. It terminates a process only when three things agree: its cgroup is a pod's, that pod was promised a slice that the
agent enforces, and a device lists the process while the pod is over its slice. Other processes are only counted.

Every setting is a flag or an environment variable (GPUSLICE_NODE for --node). A flag overrides the environment.

Exit codes: 0 stopped in order, 1 failed, 2 wrong settings.`

const examples = `  # on a node, as the DaemonSet runs it
  agent --node "$NODE_NAME"

  # report every decision and terminate nothing
  agent --node "$NODE_NAME" --dry-run

  # outside a pod, with MPS daemons of your own
  agent --node gpu-1 --kubeconfig ~/.kube/config --mps-directories /run/nvidia/mps,/tmp/nvidia-mps`

// runner runs under the settings until the context is done.
type runner func(context.Context, options, io.Writer) error

// newCommand reads settings and calls run with them.
func newCommand(lookup func(string) (string, bool), run runner) *cobra.Command {
	var o options
	cmd := &cobra.Command{Use: "agent", Short: "Enforce the GPU memory slices of every pod of this node",
		Long: longHelp, Example: examples, Version: version}
	o.define(cmd.Flags())
	read := func() error { return errors.Join(fromEnvironment(cmd.Flags(), lookup), o.validate()) }
	return component.Complete(cmd, read, func(ctx context.Context, stderr io.Writer) error { return run(ctx, o, stderr) })
}

// fromEnvironment sets the flags that the command line left out.
func fromEnvironment(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var failed []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || f.Name == "version" {
			return
		}
		name := variable(f.Name)
		if value, set := lookup(name); set {
			if err := f.Value.Set(value); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", name, err))
			}
		}
	})
	return errors.Join(failed...)
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "GPUSLICE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// execute runs the command and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer, lookup func(string) (string, bool), run runner) int {
	return component.Execute(ctx, newCommand(lookup, run), args, stdout, stderr)
}
