package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/clusters"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
)

// Values of --dry-run, in kubectl's sense.
const (
	dryRunClient = "client"
	dryRunServer = "server"
)

// Flags name objects and the cluster for which they are previewed.
type Flags struct {
	clusters.Flags
	Filenames []string
	Output    cli.Output

	dryRun string
}

// Register registers the flags. The first format is the default.
func (f *Flags) Register(cmd *cobra.Command, s cli.Streams, formats ...string) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.Filenames, "filename", "f", nil,
		"`FILE`, directory (*.yaml, *.yml, *.json, recursively) or - for standard input; may be repeated")
	f.Flags.Register(cmd, s, "of the objects that name none (default: the context's, else \"default\")")
	flags.StringVar(&f.dryRun, "dry-run", dryRunClient, "`WHERE` objects are evaluated: client, in this program; or server, by a dry-run create that the cluster's webhooks answer, which needs the right to create the object")
	cli.OutputFlag(cmd, &f.Output.Format, formats)
}

// Check returns an error if the flags contradict each other.
func (f *Flags) Check() error {
	if len(f.Filenames) == 0 {
		return errors.New("nothing to read: name it with -f FILE, -f DIRECTORY or -f -")
	}
	switch f.dryRun {
	case dryRunClient:
	case dryRunServer:
		if f.FromFiles() {
			return errors.New("--dry-run=server uses the cluster as it is: leave out --policies, --nodes and --namespaces")
		}
	default:
		return fmt.Errorf("--dry-run %q: accepted: %s, %s", f.dryRun, dryRunClient, dryRunServer)
	}
	return nil
}

// engine builds the engine that the flags name.
func (f *Flags) engine(ctx context.Context, r *manifest.Reader, s cli.Streams) (*Engine, error) {
	if f.dryRun == dryRunServer {
		connection, err := clusters.Connect(&f.Kube, s, clusters.OfflineFlags)
		if err != nil {
			return nil, err
		}
		e := f.engineFor(&clusters.Cluster{Namespace: connection.Namespace})
		e.server, err = newServer(connection)
		return e, err
	}
	c, err := clusters.Load(ctx, &f.Flags, r, s)
	if err != nil {
		return nil, err
	}
	if len(f.Policies) == 0 && !f.Live() {
		fmt.Fprintln(s.Err, "no --policies given: no policy governs any namespace")
	}
	return f.engineFor(c), nil
}

func (f *Flags) engineFor(c *clusters.Cluster) *Engine {
	e := New(c)
	e.namespace, e.fixed = cmp.Or(f.Kube.Namespace, c.Namespace, metav1.NamespaceDefault), f.Kube.Namespace != ""
	return e
}
