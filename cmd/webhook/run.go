package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpuslice/gpuslice/certs"
	"github.com/gpuslice/gpuslice/webhook"
	"github.com/gpuslice/gpuslice/webhook/ledger"
	"github.com/gpuslice/gpuslice/webhook/nativequota"
)

// Requests to the API server: a burst when it starts, next to none afterwards.
const (
	clientQPS   = 50
	clientBurst = 100

	observerQPS   = 20 // annotations and Events: a pod that starts costs one of each at most
	observerBurst = 40

	eventsQPS   = 10 // Events on the owners of refused pods, and whose owners those are
	eventsBurst = 20

	writerQPS   = 5 // ResourceQuotas, where policy has them written
	writerBurst = 10

	unlimited = -1
)

// run serves until ctx ends, and drains.
func run(ctx context.Context, o Options, stderr io.Writer) error {
	return runCounted(ctx, o, webhook.NewMetrics(version), stderr)
}

// runCounted is where interfaces meet what implements them.
func runCounted(ctx context.Context, o Options, metrics *webhook.Metrics, stderr io.Writer) error {
	log, err := newLogger(o, stderr)
	if err != nil {
		return err
	}
	client, err := connect(o.Kubeconfig, clientQPS, clientBurst)
	if err != nil {
		return err
	}
	cluster, err := webhook.NewCluster(client, o.Namespace, o.guard(), metrics, log.WithName("cluster"))
	if err != nil {
		return err
	}
	source, err := certificates(o, client, certs.NewMetrics(metrics.Registerer()), log.WithName("certs"))
	if err != nil {
		return err
	}
	keys := webhook.NewKeyring(client, o.Namespace, log.WithName("keys"))
	lead, err := election(o, client, log.WithName("leader"))
	if err != nil {
		return err
	}
	gone := &ledger.GonePods{}
	reservations, quotaMetrics, err := quotas(o, cluster, keys, lead, gone, metrics, log.WithName("quotametrics"))
	if err != nil {
		return err
	}
	defer reservations.Close()
	if err := nativequota.RegisterMetrics(metrics.Registerer(), cluster.NativeQuotas); err != nil {
		return err
	}
	refusals, err := refusals(o, metrics, log.WithName("refusals"))
	if err != nil {
		return err
	}
	quota := &webhook.Quota{Reserver: reservations, Budgets: cluster, Metrics: metrics}
	reviews, err := endpoints(handlers(o, cluster, keys, quota, refusals), metrics, log)
	if err != nil {
		return err
	}
	server := newServer(o, reviews, source, cluster, keys, metrics, log)
	log.Info("starting", "version", version, "namespace", o.Namespace, "certs", o.Certs)
	terms, err := terms(o, cluster, keys, func(namespace string, uid types.UID) {
		gone.Add(string(uid))
		reservations.PodChanged(namespace)
	}, metrics, log)
	if err != nil {
		return err
	}
	return serve(ctx, o, server, log, map[string]part{
		"watch the cluster":    cluster.Run,
		"keep the certificate": source.Start,
		"keep the keys":        keys.Run,
		"tell of refusals":     refusals.Run,
		"keep the quotas":      func(ctx context.Context) error { reservations.Run(ctx); return nil },
		"lead":                 func(ctx context.Context) error { return lead.Run(ctx, append(terms, quotaMetrics.Run)...) },
	})
}

// newServer prepares what serves the reviews, ready once everything is known that they are decided by.
func newServer(o Options, reviews map[string]http.Handler, source certs.Source, cluster *webhook.Cluster, keys *webhook.Keyring, metrics *webhook.Metrics, log logr.Logger) *webhook.Server {
	return webhook.NewServer(webhook.ServerOptions{
		GetCertificate: source.GetCertificate,
		Endpoints:      reviews,
		Checks: []webhook.Check{
			{Name: "cluster", Ready: cluster.Ready}, {Name: "keys", Ready: keys.Ready}, {Name: "certificate", Ready: source.Ready},
		},
		Metrics: metrics, Known: cluster.Known, Drain: o.Drain, Linger: o.Linger, Shutdown: o.Shutdown, Log: log.WithName("server"),
	})
}

// handlers answer the reviews of each path. What is counted in the quota's metrics is counted in theirs.
func handlers(o Options, cluster *webhook.Cluster, keys *webhook.Keyring, quota *webhook.Quota, refusals webhook.Owners) map[string]admission.Handler {
	pods := webhook.NewPods(cluster, keys.Keys, quota.Metrics, o.Namespace)
	return map[string]admission.Handler{
		webhook.PathMutatePods:       webhook.TellOwners(pods, refusals),
		webhook.PathMutateTemplates:  webhook.NewTemplates(cluster, quota.Metrics, o.Namespace),
		webhook.PathValidatePolicies: webhook.NewPolicies(cluster, quota.Metrics),
		webhook.PathValidatePods:     webhook.TellOwners(webhook.NewVerifier(pods, keys, quota), refusals),
	}
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
