// Package versions is the command that prints the versions of this program, of the webhook and of Kubernetes.
package versions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/policies/config"
)

const long = `Print the version of this program and, of the current cluster, those of the webhook, by the tag of its image or else
the label app.kubernetes.io/version of its Deployment, and of Kubernetes. It takes the right to read Deployments of the system
namespace; without it, or without a cluster, the rest is printed.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "Version", "client": {"version", "go", "platform"},
"server": {"version", "image", "kubernetes"}, "errors": [...]}. server is null without a cluster.`

const example = `  gpuslice version

  # this program alone
  gpuslice version --client`

// document is -o json.
type document struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Client     client      `json:"client"`
	Server     *server     `json:"server"`
	Errors     []cli.Error `json:"errors"`
}

type client struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

type server struct {
	Version    string `json:"version,omitempty"` // "": unknown, or no webhook is installed
	Image      string `json:"image,omitempty"`
	Kubernetes string `json:"kubernetes,omitempty"`
}

// options are the command's flags.
type options struct {
	kube       kube.Flags
	output     cli.Output
	clientOnly bool
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version, and that of the webhook",
		Long:    long,
		Example: example,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.clientOnly, "client", false, "print the version of this program alone")
	o.output.Register(cmd, cli.YAML, cli.JSONPath)
	o.kube.RegisterInstalled(cmd, s, "")
	return cmd
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	d := document{APIVersion: config.APIVersion, Kind: "Version", Errors: []cli.Error{},
		Client: client{s.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}}
	var failed error
	if !o.clientOnly {
		d.Server, failed = o.server(ctx, s)
	}
	if failed != nil {
		d.Errors = append(d.Errors, cli.Error{Place: cli.Place{Source: "cluster"}, Message: failed.Error()})
		fmt.Fprintln(s.Err, failed)
	}
	if err := o.output.Print(s.Out, cli.Answer{Document: d, Page: func() *cli.Page { return pageOf(d) }}); err != nil {
		return err
	}
	if d.differs() {
		fmt.Fprintln(s.Err, "warning: this program and the webhook are of different versions, and may decide differently")
	}
	if failed != nil && !apierrors.IsForbidden(failed) {
		return cli.ExitError(cli.ExitNoAnswer)
	}
	return nil
}

// server reads the current cluster's; nil: there is none. Beside an error it returns the known part.
func (o *options) server(ctx context.Context, s cli.Streams) (*server, error) {
	connection, err := o.kube.Connect(s)
	if errors.Is(err, kube.ErrNoCluster) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	kubernetes, err := connection.Client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("read the version of Kubernetes: %w", err)
	}
	found := &server{Kubernetes: kubernetes.GitVersion}
	deployment, err := installed.Deployment(ctx, connection.Client, o.kube.System)
	if err != nil || deployment == nil {
		return found, err
	}
	if all := deployment.Spec.Template.Spec.Containers; len(all) > 0 {
		found.Image, found.Version = all[0].Image, cmp.Or(tag(all[0].Image), deployment.Labels[labelVersion])
	}
	return found, nil
}

// labelVersion holds the version of a chart that pins the image by its digest alone.
const labelVersion = "app.kubernetes.io/version"

// tag is the tag of an image; "": it has none.
func tag(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return name[i+1:]
	}
	return ""
}

// differs reports whether the webhook is known to be of another version. A label holds no "+".
func (d *document) differs() bool {
	plain := func(version string) string { return strings.ReplaceAll(strings.TrimPrefix(version, "v"), "+", "_") }
	return d.Server != nil && d.Server.Version != "" && plain(d.Server.Version) != plain(d.Client.Version)
}

func pageOf(d document) *cli.Page {
	p := &cli.Page{}
	p.Line("gpuslice " + d.Client.Version)
	if d.Server == nil {
		return p
	}
	switch {
	case d.Server.Version != "":
		p.Linef("webhook %s (%s)", d.Server.Version, d.Server.Image)
	case strings.Contains(d.Server.Image, "@"):
		p.Line("webhook unknown (image by digest)")
	case d.Server.Image != "":
		p.Line("webhook unknown (image without a tag)")
	case len(d.Errors) > 0:
		p.Line("webhook unknown")
	default:
		p.Line("webhook not installed")
	}
	p.Line("Kubernetes " + d.Server.Kubernetes)
	return p
}
