// Package component is what the agent and the webhook have in common: how they start, end, and reach the API server.
package component

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes of a command.
const (
	ExitOK     = 0
	ExitFailed = 1 // it could not go on, or not stop in order
	ExitUsage  = 2 // flags, environment or file are wrong
)

// errUsage marks errors that the user has to correct.
var errUsage = errors.New("usage")

// Main exits with the exit code of execute, whose context is done at the first signal to stop.
func Main(execute func(context.Context) int) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal terminates the process at once
	os.Exit(execute(ctx))
}

// Complete completes a command without arguments: read reads its settings, run runs under them until the context is done.
func Complete(cmd *cobra.Command, read func() error, run func(context.Context, io.Writer) error) *cobra.Command {
	usage := func(err error) error { return fmt.Errorf("%w: %w", errUsage, err) }
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("%w: %q is not a flag; there are no arguments", errUsage, args[0])
		}
		return nil
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := read(); err != nil {
			return usage(err)
		}
		return run(cmd.Context(), cmd.ErrOrStderr())
	}
	return cmd
}

// Execute runs the command and returns the exit code.
func Execute(ctx context.Context, cmd *cobra.Command, args []string, stdout, stderr io.Writer) int {
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	fmt.Fprintf(stderr, "%s: %v\n", cmd.Name(), err)
	if errors.Is(err, errUsage) {
		fmt.Fprintf(stderr, "%s --help lists every setting\n", cmd.Name())
		return ExitUsage
	}
	return ExitFailed
}
