// Package program is the command line as a whole: its commands, their help, and exit codes.
package program

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/audit"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/bypass"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/doctor"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/explain"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/lint"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/list"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/policyinit"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/policyshow"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/policytest"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/pools"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/quota"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/render"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/resign"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/translate"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/uninstall"
	"github.com/gpuslice/gpuslice/cmd/prove/ongpu"
)

// Run executes the command line args (args[0] is the program) and returns the exit code.
func Run(ctx context.Context, args []string, s cli.Streams) int {
	s.Err = cli.WithoutEscapes(s.Err)
	root := New(args[0], s)
	root.SetArgs(args[1:])
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = cli.KnownTopic
	}
	err := root.ExecuteContext(ctx)
	if code, ok := errors.AsType[cli.ExitError](err); ok {
		return int(code)
	}
	if err != nil {
		fmt.Fprintf(s.Err, "gpuslice: %v\n", err)
		if errors.Is(err, cli.ErrInternal) {
			return cli.ExitInternal
		}
		return cli.ExitNoAnswer
	}
	return cli.ExitDone
}

const rootLong = `Show what gpuslice makes of a pod that requests a share of a GPU, under which policy, on which nodes, and why: offline from
files, or for the current cluster. Check, preview and remove its installation.

Objects go to standard output, reasons to standard error.

` + cli.ExitHelp

// SeeExitCodes ends the help of each command.
const SeeExitCodes = "Exit codes: see gpuslice --help."

// New returns the program with all its commands. name is how it was called.
func New(name string, s cli.Streams) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "gpuslice",
		Short: "Share NVIDIA GPUs on Kubernetes: see what becomes of a pod before it is created",
		Long:  rootLong,
		Example: `  # what is wrong with this cluster, before or after an installation
  gpuslice doctor

  # what would become of my pod
  gpuslice explain -f pod.yaml -n team-a

  # why it waits, was denied or ended
  gpuslice explain train-0 -n team-a`,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !version {
				return cmd.Help()
			}
			_, err := fmt.Fprintf(s.Out, "gpuslice %s\n", s.Version)
			return err
		},
	}
	if strings.HasPrefix(filepath.Base(name), "kubectl-") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl gpuslice"}
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.Flags().BoolVarP(&version, "version", "v", false, "version for "+root.DisplayName())
	root.SetFlagErrorFunc(cli.FlagError)
	root.AddCommand(render.New(s), explain.New(s), list.New(s),
		newPolicyCommand(lint.New(s), policyshow.New(s), policyinit.New(s), policytest.New(s)),
		pools.New(s), quota.New(s), audit.New(s), bypass.New(s),
		doctor.New(s), doctor.NewVerify(s, proofs()...), translate.New(s), resign.New(s),
		uninstall.New(s))
	root.AddCommand(fleet.New(s)...)
	takeNoArguments(root)
	referToExitCodes(root)
	group(root)
	splitFlags(root)
	cli.CompleteWords(root)
	return root
}

// proofs are what verify can do in the place of dry-runs, a line each.
func proofs() []doctor.Proof {
	return []doctor.Proof{
		ongpu.New(),
	}
}

// takeNoArguments has a command and those below it take no arguments where they do not say otherwise.
func takeNoArguments(cmd *cobra.Command) {
	if cmd.Args == nil {
		cmd.Args = cli.NoArguments
	}
	for _, c := range cmd.Commands() {
		takeNoArguments(c)
	}
}

// referToExitCodes ends the help of every command below root with a pointer to the one list of exit codes.
func referToExitCodes(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.Long != "" {
			c.Long += "\n\n" + SeeExitCodes
		}
		referToExitCodes(c)
	}
}

func newPolicyCommand(commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Work with policy documents",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}
