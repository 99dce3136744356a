package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Exit codes of the command.
const (
	exitOK     = 0
	exitFailed = 1 // it could not serve, or not stop in order
	exitUsage  = 2 // flags, environment or file are wrong
)

// version is stamped by the linker: -X main.version=v0.1.0.
var version = "devel"

// errUsage marks errors that the user has to correct.
var errUsage = errors.New("usage")

const longHelp = `Serve gpuslice's admission webhooks over HTTPS.

Every setting is a flag, an environment variable (GPUSLICE_LISTEN for --listen), or a key of the file that --config
names (listen). A flag overrides the environment, which overrides the file, which overrides the default. An unknown flag
or key is an error.

Exit codes: 0 stopped in order, 1 failed, 2 wrong settings.`

const examples = `  # in a cluster, as the manifests run it
  webhook

  # outside a cluster, called by URL
  webhook --kubeconfig ~/.kube/config --listen 10.99.0.2:9443 --certs-names 10.99.0.2

  # with mounted certificates
  webhook --certs files --certs-file /tls/tls.crt --certs-key-file /tls/tls.key

  # with a certificate of cert-manager, whose cainjector writes caBundle
  webhook --certs cert-manager --certs-file /tls/tls.crt --certs-key-file /tls/tls.key --certs-ca-file /tls/ca.crt`

// runner serves under the settings until the context ends.
type runner func(context.Context, Options, io.Writer) error

// newCommand reads settings and calls run with them.
func newCommand(run runner) *cobra.Command {
	cmd := &cobra.Command{
		Use: "webhook", Short: "Serve gpuslice's admission webhooks", Long: longHelp, Example: examples, Version: version,
		SilenceUsage: true, SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%w: %q is not a flag; there are no arguments", errUsage, args[0])
			}
			return nil
		},
	}
	defineFlags(cmd.Flags())
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		options, err := readOptions(cmd.Flags())
		if err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		return run(cmd.Context(), options, cmd.ErrOrStderr())
	}
	return cmd
}

// execute runs the command and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer, run runner) int {
	cmd := newCommand(run)
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "webhook: %v\n", err)
	if errors.Is(err, errUsage) {
		fmt.Fprintln(stderr, "webhook --help lists every setting")
		return exitUsage
	}
	return exitFailed
}
