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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpuslice/gpuslice/certs"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook"
	"github.com/gpuslice/gpuslice/webhook/accounts"
	"github.com/gpuslice/gpuslice/webhook/bypass"
	"github.com/gpuslice/gpuslice/webhook/events"
	"github.com/gpuslice/gpuslice/webhook/leader"
	"github.com/gpuslice/gpuslice/webhook/ledger"
	"github.com/gpuslice/gpuslice/webhook/nativequota"
	"github.com/gpuslice/gpuslice/webhook/observe"
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
	departed := &ledger.Departed{}
	held, books, err := quotas(o, cluster, keys, lead, departed, metrics, log.WithName("accounts"))
	if err != nil {
		return err
	}
	defer held.Close()
	if err := nativequota.Watch(metrics.Registerer(), cluster.NativeQuotas); err != nil {
		return err
	}
	refusals, err := refusals(o, metrics, log.WithName("refusals"))
	if err != nil {
		return err
	}
	quota := &webhook.Quota{Room: held, Budgets: cluster, Metrics: metrics}
	reviews, err := endpoints(handlers(o, cluster, keys, quota, refusals), metrics, log)
	if err != nil {
		return err
	}
	server := webhook.NewServer(webhook.ServerOptions{
		GetCertificate: source.GetCertificate,
		Endpoints:      reviews,
		Checks: []webhook.Check{
			{Name: "cluster", Ready: cluster.Ready}, {Name: "keys", Ready: keys.Ready}, {Name: "certificate", Ready: source.Ready},
		},
		Metrics: metrics, Known: cluster.Known, Drain: o.Drain, Linger: o.Linger, Shutdown: o.Shutdown, Log: log.WithName("server"),
	})
	log.Info("starting", "version", version, "namespace", o.Namespace, "certs", o.Certs)
	terms, err := terms(o, cluster, keys, func(namespace string, uid types.UID) {
		departed.Left(string(uid))
		held.PodChanged(namespace)
	}, metrics, log)
	if err != nil {
		return err
	}
	return serve(ctx, o, server, log, map[string]part{
		"watch the cluster":    cluster.Run,
		"keep the certificate": source.Start,
		"keep the keys":        keys.Run,
		"tell of refusals":     refusals.Run,
		"keep the quotas":      func(ctx context.Context) error { held.Run(ctx); return nil },
		"lead":                 func(ctx context.Context) error { return lead.Run(ctx, append(terms, books.Run)...) },
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

// election is this replica's part in choosing the leader.
func election(o Options, client kubernetes.Interface, log logr.Logger) (*leader.Election, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this replica: %w", err)
	}
	return &leader.Election{Client: client, Namespace: o.Namespace, Identity: host + "_" + rand.Text(), Log: log}, nil
}

// quotas makes the ledger, and the accounts of what it finds. The ledger's client has no allowance to wait for: pods do.
func quotas(o Options, cluster *webhook.Cluster, keys *webhook.Keyring, lead *leader.Election, departed *ledger.Departed, metrics *webhook.Metrics, log logr.Logger) (*ledger.Ledger, *accounts.Accounts, error) {
	client, err := connect(o.Kubeconfig, unlimited, 0)
	if err != nil {
		return nil, nil, err
	}
	slow, err := connect(o.Kubeconfig, writerQPS, writerBurst)
	if err != nil {
		return nil, nil, err
	}
	var held *ledger.Ledger
	books, err := accounts.New(accounts.Options{
		Client: slow, Namespace: o.Namespace, Ready: cluster.Ready, Budgets: cluster.Budgets, Quotas: cluster.Quotas,
		Begun: func() { held.LookAtAll() }, Registerer: metrics.Registerer(), Log: log,
	})
	if err != nil {
		return nil, nil, err
	}
	held = ledger.New(ledger.Options{
		Store: ledger.ClusterStore{Client: client, Namespace: o.Namespace},
		Lister: &ledger.ClusterLister{Client: client, Hold: func(pod *corev1.Pod) (policies.Holding, ledger.Standing) {
			return cluster.Hold(keys.Keys(), pod)
		}},
		// Without keys and policies every pod that lives looks as if it had come while nobody looked.
		Budgets: cluster.Budgets, Leads: func() bool { return lead.Leads() && keys.Ready() == nil && cluster.Ready() == nil }, Departed: departed, Report: books.Report,
	})
	metrics.WatchLedger(held.Counts)
	return held, books, nil
}

// refusals tells the owners of refused pods, with an allowance of its own: whoever may create pods can have thousands
// refused.
func refusals(o Options, metrics *webhook.Metrics, log logr.Logger) (*events.Refusals, error) {
	client, err := connect(o.Kubeconfig, eventsQPS, eventsBurst)
	if err != nil {
		return nil, err
	}
	return events.NewRefusals(client, metrics.Registerer(), log)
}

// terms are what the leader does. Its client has an allowance of its own: a wave of pods must not keep state and
// certificates from being written.
func terms(o Options, cluster *webhook.Cluster, keys *webhook.Keyring, podLeft func(string, types.UID), metrics *webhook.Metrics, log logr.Logger) ([]leader.Term, error) {
	written, err := connect(o.Kubeconfig, writerQPS, writerBurst)
	if err != nil {
		return nil, err
	}
	writer := &nativequota.Writer{Client: written, Quotas: cluster.ResourceQuotas(), Governed: cluster.Governed, Log: log.WithName("nativequota")}
	client, err := connect(o.Kubeconfig, observerQPS, observerBurst)
	if err != nil {
		return nil, err
	}
	keeper, err := bypass.New(bypass.Options{
		Client: client, Namespaces: cluster.Namespaces(), Registerer: metrics.Registerer(), Log: log.WithName("bypass"),
	})
	if err != nil {
		return nil, err
	}
	if !o.Observe {
		return []leader.Term{keeper.Run, writer.Run}, nil
	}
	observer, err := observe.New(observe.Options{
		Client: client, Nodes: cluster.Nodes(), Keys: keys.Keys, PodLeft: podLeft, Registerer: metrics.Registerer(), Log: log.WithName("observe"),
	})
	if err != nil {
		return nil, err
	}
	return []leader.Term{keeper.Run, writer.Run, observer.Run}, nil
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

// endpoints serves each handler under its path. Those that wait for a quota have queues of their own.
func endpoints(handlers map[string]admission.Handler, metrics *webhook.Metrics, log logr.Logger) (map[string]http.Handler, error) {
	limits, out := webhook.NewLimits(), map[string]http.Handler{}
	waiting := limits.Waiting()
	for path, handler := range handlers {
		queues := limits
		if path == webhook.PathValidatePods {
			queues = waiting
		}
		endpoint, err := webhook.NewEndpoint(path[1:], handler, queues, metrics, log)
		if err != nil {
			return nil, fmt.Errorf("serve %s: %w", path, err)
		}
		out[path] = endpoint
	}
	return out, nil
}
