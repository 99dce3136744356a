package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpuslice/gpuslice/certs"
	"github.com/gpuslice/gpuslice/webhook"
	"github.com/gpuslice/gpuslice/webhook/observe"
)

// Requests to the API server: a burst when it starts, next to none afterwards.
const (
	clientQPS   = 50
	clientBurst = 100

	observerQPS   = 20 // annotations and Events: a pod that starts costs one of each at most
	observerBurst = 40
)

// run is where interfaces meet what implements them. It serves until ctx ends, and drains.
func run(ctx context.Context, o Options, stderr io.Writer) error {
	log, err := newLogger(o, stderr)
	if err != nil {
		return err
	}
	client, err := connect(o.Kubeconfig, clientQPS, clientBurst)
	if err != nil {
		return err
	}
	metrics := webhook.NewMetrics(version)
	cluster, err := webhook.NewCluster(client, o.Namespace, o.guard(), metrics, log.WithName("cluster"))
	if err != nil {
		return err
	}
	source, err := certificates(o, client, certs.NewMetrics(metrics.Registerer()), log.WithName("certs"))
	if err != nil {
		return err
	}
	reviews, err := endpoints(cluster, metrics, o.Namespace, log)
	if err != nil {
		return err
	}
	server := webhook.NewServer(webhook.ServerOptions{
		GetCertificate: source.GetCertificate,
		Endpoints:      reviews,
		Checks:         []webhook.Check{{Name: "cluster", Ready: cluster.Ready}, {Name: "certificate", Ready: source.Ready}},
		Metrics:        metrics, Known: cluster.Known, Drain: o.Drain, Shutdown: o.Shutdown, Log: log.WithName("server"),
	})
	log.Info("starting", "version", version, "namespace", o.Namespace, "certs", o.Certs)
	parts := map[string]part{"watch the cluster": cluster.Run, "keep the certificate": source.Start}
	if o.Observe {
		observer, err := observer(o, cluster, metrics, log.WithName("observe"))
		if err != nil {
			return err
		}
		parts["observe enforcement"] = observer.Run
	}
	return serve(ctx, o, server, log, parts)
}

// part runs beside the server until its context ends.
type part func(context.Context) error

// serve runs the parts beside the server, and ends them after it: reviews are decided while it drains. A part that
// fails ends the server.
func serve(ctx context.Context, o Options, server *webhook.Server, log logr.Logger, parts map[string]part) error {
	reviews, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	probes, err := net.Listen("tcp", o.MetricsListen)
	if err != nil {
		_ = reviews.Close()
		return fmt.Errorf("listen: %w", err)
	}
	log.Info("listening", "reviews", reviews.Addr().String(), "probes", probes.Addr().String())
	serving, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	beside, end := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	for what, run := range parts {
		running.Go(func() {
			if err := run(beside); err != nil {
				fail(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	if err := server.Serve(serving, reviews, probes); err != nil {
		return err
	}
	if ctx.Err() == nil {
		return context.Cause(serving)
	}
	return nil
}

// observer makes the controller of observed enforcement. Its client has an allowance of its own: a wave of pods must not
// keep state and certificates from being written.
func observer(o Options, cluster *webhook.Cluster, metrics *webhook.Metrics, log logr.Logger) (*observe.Controller, error) {
	client, err := connect(o.Kubeconfig, observerQPS, observerBurst)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this replica: %w", err)
	}
	return observe.New(observe.Options{
		Client: client, Nodes: cluster.Nodes(), Namespace: o.Namespace,
		Identity: host + "_" + rand.Text(), Registerer: metrics.Registerer(), Log: log,
	})
}

// connect makes a client of the API server with an allowance of requests.
func connect(kubeconfig string, qps float32, burst int) (kubernetes.Interface, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	config.QPS, config.Burst = qps, burst
	config.UserAgent = "gpuslice-webhook/" + version
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return client, nil
}

// certificates makes the source of the serving certificate.
func certificates(o Options, client kubernetes.Interface, metrics *certs.Metrics, log logr.Logger) (certs.Source, error) {
	configurations := certs.Configurations{Client: client, Mutating: o.Mutating, Validating: o.Validating}
	secret := certs.SharedSecret{Client: client, Namespace: o.Namespace, Name: o.CertsSecret}
	if o.Certs == certsSelf {
		return certs.NewSelfSigned(certs.SelfSignedOptions{
			Secret: secret, Names: o.names(), Configurations: configurations, Metrics: metrics, Log: log,
			Lifetimes: certs.Lifetimes{Authority: o.CertsCALife, Leaf: o.CertsLife, Settle: o.CertsSettle},
		}), nil
	}
	files := certs.MountedOptions{
		Certificate: o.CertsFile, Key: o.CertsKeyFile, Configurations: configurations, Settle: o.CertsSettle, Metrics: metrics, Log: log,
	}
	if o.Certs == certsCertManager {
		files.Announce = &certs.Announcement{Secret: secret, Authority: o.CertsCAFile}
	}
	return certs.FromFiles(files)
}

// endpoints serves each handler under its path, behind shared limits.
func endpoints(source webhook.Source, metrics *webhook.Metrics, system string, log logr.Logger) (map[string]http.Handler, error) {
	limits, out := webhook.NewLimits(), map[string]http.Handler{}
	for path, handler := range map[string]admission.Handler{
		webhook.PathMutatePods:      webhook.NewPods(source, metrics, system),
		webhook.PathMutateTemplates: webhook.NewTemplates(source, metrics, system),
	} {
		endpoint, err := webhook.NewEndpoint(path[1:], handler, limits, metrics, log)
		if err != nil {
			return nil, fmt.Errorf("serve %s: %w", path, err)
		}
		out[path] = endpoint
	}
	return out, nil
}
