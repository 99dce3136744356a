package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// streams are the process's surroundings, so that tests can bring their own.
type streams struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
}

// run executes the command line args (args[0] is the program) and returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	root := newRootCommand(args[0], s)
	root.SetArgs(args[1:])
	err := root.ExecuteContext(ctx)
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	if err != nil {
		fmt.Fprintf(s.err, "gpuslice: %v\n", err)
		if errors.Is(err, errInternal) {
			return exitInternal
		}
		return exitInput
	}
	return exitDone
}

const rootLong = `gpuslice says what its webhook makes of a pod that asks for a share of a GPU, under which policy, on which nodes,
and why: offline from files, or for the cluster at hand.

Objects go to standard output, reasons to standard error.

Exit codes:
  0  done: everything was rewritten or left alone, nothing is wrong
  1  internal error: a bug of gpuslice
  2  bad usage, or input or a cluster that cannot be read
  3  at least one object is refused, or one problem was found
  4  no problem was found, but at least one warning`

func newRootCommand(program string, s streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "gpuslice",
		Short:         "Share NVIDIA GPUs on Kubernetes: see what becomes of a pod before it is created",
		Long:          rootLong,
		Version:       buildVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArguments,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	if strings.HasPrefix(filepath.Base(program), "kubectl-") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl gpuslice"}
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetVersionTemplate("gpuslice {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w (%s --help)", err, cmd.CommandPath())
	})
	root.AddCommand(newRenderCommand(s), newExplainCommand(s), newPolicyCommand(s), newQuotaCommand(s), newAuditCommand(s), newBypassCommand(s),
		newDoctorCommand(s), newVerifyCommand(s), newUninstallCommand(s), newVersionCommand(s))
	return root
}

func newVersionCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  gpuslice version",
		Args:    noArguments,
		Run:     func(*cobra.Command, []string) { fmt.Fprintf(s.out, "gpuslice %s\n", buildVersion()) },
	}
}

// buildVersion is the stamped version, else what the Go toolchain recorded.
func buildVersion() string {
	if version != "" {
		return version
	}
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" {
		return build.Main.Version
	}
	return "(devel)"
}

// noArguments refuses arguments and says where files go: "unknown command pod.yaml" helps nobody.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.Flags().Lookup("filename") != nil {
		return fmt.Errorf("unexpected argument %q: name files with -f (%s --help)", args[0], cmd.CommandPath())
	}
	return fmt.Errorf("unknown command %q (%s --help lists what there is)", args[0], cmd.CommandPath())
}
