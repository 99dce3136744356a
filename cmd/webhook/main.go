// Command webhook serves gpuslice's admission webhooks.
package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/component"
)

func main() {
	component.Main(func(ctx context.Context) int { return execute(ctx, os.Args[1:], os.Stdout, os.Stderr, run) })
}

// version is stamped by the linker: -X main.version=v0.1.0.
var version = "devel"

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

// runner serves under the settings until the context is done.
type runner func(context.Context, Options, io.Writer) error

// execute reads settings, calls run with them, and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer, run runner) int {
	cmd := &cobra.Command{Use: "webhook", Short: "Serve gpuslice's admission webhooks", Long: longHelp, Example: examples, Version: version}
	defineFlags(cmd.Flags())
	var o Options
	read := func() (err error) { o, err = readOptions(cmd.Flags()); return err }
	component.Complete(cmd, read, func(ctx context.Context, stderr io.Writer) error { return run(ctx, o, stderr) })
	return component.Execute(ctx, cmd, args, stdout, stderr)
}
