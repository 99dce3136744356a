package history

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/scrape"
)

// Server are the flags that name a Prometheus.
type Server struct {
	Address, tokenFile, caFile string

	headers []string
	cluster string
}

// Register adds the flags.
func (o *Server) Register(flags *pflag.FlagSet) {
	flags.StringVar(&o.Address, "prometheus", "",
		"`ADDRESS` of Prometheus: a URL, or NAMESPACE/SERVICE:PORT (default: the service that is found in the cluster)")
	flags.StringVar(&o.tokenFile, "prometheus-token-file", "", "`FILE` with a bearer token for the URL")
	flags.StringVar(&o.caFile, "prometheus-ca", "", "`FILE` with the authority of the URL's certificate")
	flags.StringArrayVar(&o.headers, "prometheus-header", nil,
		"`HEADER` of each request, such as \"X-Scope-OrgID: team-a\", the tenant of Mimir and others; may be repeated")
	flags.StringVar(&o.cluster, "prometheus-cluster", "", "`NAME` of the cluster to read, if the server has several: the label cluster, cluster_name, cluster_id or k8s_cluster_name")
}

// Check checks the flags together.
func (o *Server) Check() error {
	if (o.tokenFile != "" || o.caFile != "") && !o.atURL() {
		return errors.New("--prometheus-token-file and --prometheus-ca are for a URL: name it with --prometheus")
	}
	return nil
}

func (o *Server) atURL() bool { return strings.Contains(o.Address, "://") }

// Connect returns Prometheus, and a client of the cluster in which it is a Service; nil: the flags name a URL.
func (o *Server) Connect(ctx context.Context, s cli.Streams, cluster *kube.Flags) (*Prometheus, kubernetes.Interface, error) {
	if o.atURL() {
		server, err := o.connectURL()
		if err == nil {
			err = o.apply(server)
		}
		return server, nil, err
	}
	connection, err := cluster.Connect(s)
	if errors.Is(err, kube.ErrNoCluster) {
		err = fmt.Errorf("%w, or a URL with --prometheus", err)
	}
	if err != nil {
		return nil, nil, err
	}
	client, err := scrape.Connect(connection.Config) // the Service may be a tenant's
	if err != nil {
		return nil, nil, err
	}
	server, err := InCluster(ctx, client, o.Address)
	if err == nil {
		err = o.apply(server)
	}
	return server, connection.Client, err
}

func (o *Server) apply(p *Prometheus) error {
	p.Cluster = o.cluster
	if err := p.addHeaders(o.headers, !o.atURL()); err != nil {
		return fmt.Errorf("--prometheus-header %w", err)
	}
	return nil
}

// SeveralClustersError is the error where a server or file has series of several clusters, and one is needed.
func SeveralClustersError(names []string) error {
	return fmt.Errorf("the samples are of several clusters: name one with --prometheus-cluster: %.300s", strings.Join(names, ", "))
}

// Cluster is the cluster of --prometheus-cluster.
func (o *Server) Cluster() string { return o.cluster }

func (o *Server) connectURL() (*Prometheus, error) {
	const most = 1 << 20
	var token, authority []byte
	for path, into := range map[string]*[]byte{o.tokenFile: &token, o.caFile: &authority} {
		if path == "" {
			continue
		}
		text, err := cli.ReadFile(path, most)
		if err != nil {
			return nil, err
		}
		*into = text
	}
	server, err := AtURL(o.Address, strings.TrimSpace(string(token)), authority)
	if err != nil {
		return nil, fmt.Errorf("--prometheus %w", err)
	}
	return server, nil
}
