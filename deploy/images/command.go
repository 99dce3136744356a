package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/deploy/images/recipe"
)

// Exit codes.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitPartial = 3 // only some images could be built
)

// errUsage marks errors of the command line.
var errUsage = errors.New("bad usage")

const long = `images builds the container images of gpuslice, for the webhook and for the guard, without a container tool, and
pushes them to a registry.

Exit codes:
  0  done
  1  it failed
  2  bad usage
  3  an image lacks a platform for want of a C compiler; all others are built`

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:   "images",
		Short: "Build and push the container images of gpuslice",
		Long:  long,
		Example: `  go run ./deploy/images build
  go run ./deploy/images push registry.example.com/gpuslice`,
		SilenceUsage: true, SilenceErrors: true,
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: %w (%s --help)", errUsage, err, cmd.CommandPath())
	})
	root.AddCommand(newBuildCommand(), newPushCommand(), newLockCommand())
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(stderr, "images: %v\n", err)
	switch {
	case errors.Is(err, recipe.ErrNoCompiler):
		return exitPartial
	case errors.Is(err, errUsage):
		return exitUsage
	}
	return exitFailed
}

// usage marks errors of a check of arguments.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("%w: %w (%s --help)", errUsage, err, cmd.CommandPath())
		}
		return nil
	}
}

// say reports progress on the command's standard error.
func say(cmd *cobra.Command) func(string, ...any) {
	return func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
}
