package main

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"

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
	"github.com/gpuslice/gpuslice/webhook/bypass"
	"github.com/gpuslice/gpuslice/webhook/events"
	"github.com/gpuslice/gpuslice/webhook/leader"
	"github.com/gpuslice/gpuslice/webhook/ledger"
	"github.com/gpuslice/gpuslice/webhook/nativequota"
	"github.com/gpuslice/gpuslice/webhook/observe"
	"github.com/gpuslice/gpuslice/webhook/quotametrics"
)

// election is this replica's part in choosing the leader.
func election(o Options, client kubernetes.Interface, log logr.Logger) (*leader.Election, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this replica: %w", err)
	}
	return &leader.Election{Client: client, Namespace: o.Namespace, Identity: host + "_" + rand.Text(), Log: log}, nil
}

// quotas makes the ledger, and the exporter of what it finds. The ledger's client has no allowance to wait for: pods do.
func quotas(o Options, cluster *webhook.Cluster, keys *webhook.Keyring, lead *leader.Election, gone *ledger.GonePods, metrics *webhook.Metrics, log logr.Logger) (*ledger.Ledger, *quotametrics.Exporter, error) {
	client, err := connect(o.Kubeconfig, unlimited, 0)
	if err != nil {
		return nil, nil, err
	}
	slow, err := connect(o.Kubeconfig, writerQPS, writerBurst)
	if err != nil {
		return nil, nil, err
	}
	var reservations *ledger.Ledger
	exporter, err := quotametrics.New(quotametrics.Options{
		Client: slow, Namespace: o.Namespace, Ready: cluster.Ready, Budgets: cluster.Budgets, Quotas: cluster.Quotas,
		Started: func() { reservations.ReconcileAll() }, Registerer: metrics.Registerer(), Log: log,
	})
	if err != nil {
		return nil, nil, err
	}
	reservations = ledger.New(ledger.Options{
		Store: ledger.ClusterStore{Client: client, Namespace: o.Namespace},
		Lister: &ledger.ClusterLister{Client: client, HoldingOf: func(pod *corev1.Pod) (policies.Holding, ledger.ChargeBasis) {
			return cluster.Hold(keys.Keys(), pod)
		}},
		// Without keys and policies every pod that lives looks as if it had come while nobody looked.
		Budgets: cluster.Budgets, Leads: func() bool { return lead.Leads() && keys.Ready() == nil && cluster.Ready() == nil }, Gone: gone, Report: exporter.Report,
	})
	metrics.WatchLedger(reservations.Counts)
	return reservations, exporter, nil
}

// refusals tells the owners of refused pods, with an allowance of its own: whoever may create pods can have thousands
// refused.
func refusals(o Options, metrics *webhook.Metrics, log logr.Logger) (*events.Denials, error) {
	client, err := connect(o.Kubeconfig, eventsQPS, eventsBurst)
	if err != nil {
		return nil, err
	}
	return events.NewDenials(client, metrics.Registerer(), log)
}

// terms are what the leader does. Its client has an allowance of its own: a wave of pods must not keep state and
// certificates from being written.
func terms(o Options, cluster *webhook.Cluster, keys *webhook.Keyring, podLeft func(string, types.UID), metrics *webhook.Metrics, log logr.Logger) ([]leader.Runnable, error) {
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
		return []leader.Runnable{keeper.Run, writer.Run}, nil
	}
	observer, err := observe.New(observe.Options{
		Client: client, Nodes: cluster.Nodes(), Keys: keys.Keys, PodGone: podLeft, Registerer: metrics.Registerer(), Log: log.WithName("observe"),
	})
	if err != nil {
		return nil, err
	}
	return []leader.Runnable{keeper.Run, writer.Run, observer.Run}, nil
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
