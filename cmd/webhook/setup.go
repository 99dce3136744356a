package main

import (
	"context"
	"net/http"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/certs"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/admission/budgets"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/pods"
	"github.com/gpuslice/gpuslice/webhook/admission/policydocs"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
	"github.com/gpuslice/gpuslice/webhook/admission/server"
	"github.com/gpuslice/gpuslice/webhook/admission/watcher"
	"github.com/gpuslice/gpuslice/webhook/clock"
	"github.com/gpuslice/gpuslice/webhook/events"
	"github.com/gpuslice/gpuslice/webhook/keys"
	"github.com/gpuslice/gpuslice/webhook/leader"
	"github.com/gpuslice/gpuslice/webhook/leader/quotametrics"
	"github.com/gpuslice/gpuslice/webhook/ledger"
	"github.com/gpuslice/gpuslice/webhook/nativequota"
)

// Setup connects interfaces with their implementations: the parts of one replica.
type Setup struct {
	options Options
	metrics *metrics.Metrics
	log     logr.Logger

	clock        *clock.Clock
	client       kubernetes.Interface
	cluster      *watcher.Watcher
	budgets      *budgets.Budgets
	keys         *keys.Keyring
	certificate  certs.Source
	election     *leader.Election
	ledger       *ledger.Ledger
	gonePods     *ledger.GonePods
	quotaPods    *ledger.ClusterWatcher
	ledgers      *ledger.StoreWatch
	quotaMetrics *quotametrics.Exporter
	denials      *events.Denials
	runnables    []leader.Runnable                 // of each lead
	beginLead    func() ([]leader.Runnable, error) // the runnables, and the ones that last as long as one lead
}

// newSetup makes the parts. Nothing runs yet.
func newSetup(o Options, m *metrics.Metrics, log logr.Logger) (*Setup, error) {
	s := &Setup{options: o, metrics: m, log: log}
	for _, step := range []func() error{
		s.makeClient, s.makeCluster, s.makeCertificate, s.makeElection, s.makeLedger, s.makeDenials, s.makeRunnables,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Setup) makeClient() (err error) {
	if s.clock, err = clock.New(s.metrics.Registerer(), s.log.WithName("clock")); err != nil {
		return err
	}
	s.client, err = s.connect(clientRate)
	return err
}

// makeCluster makes the inputs of decisions.
func (s *Setup) makeCluster() (err error) {
	objects, err := s.connectObjects(clientRate)
	if err != nil {
		return err
	}
	s.cluster, err = watcher.New(watcher.Options{
		Client: s.client, Objects: objects, Namespace: s.options.Namespace, Guard: s.options.guard(),
		Metrics: s.metrics, Log: s.log.WithName("cluster"),
	})
	if err != nil {
		return err
	}
	s.budgets = budgets.NewBudgets(s.cluster)
	s.keys = keys.New(s.client, s.options.Namespace, s.log.WithName("keys"))
	return nativequota.RegisterMetrics(s.metrics.Registerer(), s.cluster.QuotaStatuses)
}

// makeCertificate makes the source of the serving certificate.
func (s *Setup) makeCertificate() (err error) {
	o, log, m := s.options, s.log.WithName("certs"), certs.NewMetrics(s.metrics.Registerer())
	configurations := certs.Configurations{Client: s.client, Mutating: o.Mutating, Validating: o.Validating}
	secret := certs.SharedSecret{Client: s.client, Namespace: o.Namespace, Name: o.CertsSecret}
	if o.Certs == certsSelf {
		s.certificate = certs.NewSelfSigned(certs.SelfSignedOptions{
			Secret: secret, Names: o.names(), Configurations: configurations, Metrics: m, Log: log,
			Lifetimes: certs.Lifetimes{Authority: o.CertsCALife, Leaf: o.CertsLife, Propagation: o.CertsPropagation},
		})
		return nil
	}
	files := certs.MountedOptions{
		Certificate: o.CertsFile, Key: o.CertsKeyFile, Configurations: configurations, Propagation: o.CertsPropagation, Metrics: m, Log: log,
	}
	if o.Certs == certsCertManager {
		files.Announce = &certs.Announcement{Secret: secret, Authority: o.CertsCAFile}
	}
	s.certificate, err = certs.FromFiles(files)
	return err
}

// makeLedger makes the ledger, and the exporter of its reports. The ledger's client has no rate limit: pods wait for
// it.
func (s *Setup) makeLedger() error {
	client, err := s.connect(unlimited)
	if err != nil {
		return err
	}
	slow, err := s.connect(writerRate)
	if err != nil {
		return err
	}
	namespace := s.options.Namespace
	s.quotaMetrics, err = quotametrics.New(quotametrics.Options{
		Client: slow, Namespace: namespace, Ready: s.cluster.Ready, Budgets: s.budgets.All, Quotas: s.budgets.Limits,
		Started: func() { s.ledger.ReconcileAll() }, Registerer: s.metrics.Registerer(), Log: s.log.WithName("quotametrics"),
	})
	if err != nil {
		return err
	}
	s.gonePods = &ledger.GonePods{}
	holdingOf := func(pod *corev1.Pod) (quota.Holding, ledger.ChargeBasis) {
		return s.budgets.HoldingOf(s.keys.Keys(), pod)
	}
	generation := func(namespace string) any { return s.budgets.Generation(s.keys.Generation(), namespace) }
	s.quotaPods = &ledger.ClusterWatcher{Client: client, HoldingOf: holdingOf, Generation: generation, Gone: s.gonePods}
	s.ledgers = ledger.NewStoreWatch(client, namespace)
	s.ledger = ledger.New(ledger.Options{
		Store:   ledger.ClusterStore{Client: client, Namespace: namespace},
		Lister:  &ledger.ClusterLister{Client: client, HoldingOf: holdingOf, Generation: generation},
		Watcher: s.quotaPods, Shown: s.ledgers.Shown,
		Budgets: s.budgets.All, Leads: s.leads, Gone: s.gonePods, Report: s.quotaMetrics.Report, Bounds: s.clock.Bounds,
	})
	s.metrics.WatchLedger(s.ledger.Counts)
	return nil
}

// makeDenials makes the reporter of denied pods to their owners, with a rate limit of its own: whoever may create pods
// can have thousands denied.
func (s *Setup) makeDenials() error {
	client, err := s.connect(eventsRate)
	if err != nil {
		return err
	}
	s.denials, err = events.NewDenials(client, s.metrics.Registerer(), s.log.WithName("denials"))
	return err
}

// podGone frees a pod's holding.
func (s *Setup) podGone(namespace string, uid types.UID) {
	s.gonePods.Add(string(uid))
	s.ledger.PodChanged(namespace)
}

// parts run beside the server, by name.
func (s *Setup) parts() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"watch the cluster":    s.cluster.Run,
		"keep the certificate": s.certificate.Start,
		"keep the keys":        s.keys.Run,
		"report denials":       s.denials.Run,
		"keep the quotas":      func(ctx context.Context) error { s.ledger.Run(ctx); return nil },
		"watch pods":           func(ctx context.Context) error { s.quotaPods.Run(ctx); return nil },
		"watch ledgers":        func(ctx context.Context) error { s.ledgers.Run(ctx); return nil },
		"lead":                 func(ctx context.Context) error { return s.election.Run(ctx, s.beginLead) },
	}
}

// server makes the server of reviews, ready once all inputs of decisions are known.
func (s *Setup) server() *server.Server {
	o := s.options
	return server.New(server.Options{
		GetCertificate: s.certificate.GetCertificate,
		Endpoints:      s.endpoints(),
		Checks: []server.Check{
			{Name: "cluster", Ready: s.cluster.Ready}, {Name: "keys", Ready: s.keys.Ready}, {Name: "certificate", Ready: s.certificate.Ready},
			{Name: "clock", Ready: s.clock.Ready},
		},
		Metrics: s.metrics, State: func() any { return s.cluster.StateReport() },
		Drain: o.Drain, IdleGrace: o.IdleGrace, Shutdown: o.Shutdown, Log: s.log.WithName("server"),
	})
}

// endpoints serves each handler under its path. Those that wait for a quota have queues of their own.
func (s *Setup) endpoints() map[string]http.Handler {
	common := pods.Options{Source: s.cluster, Metrics: s.metrics, Namespace: s.options.Namespace}
	checker := &budgets.Checker{Reserver: s.ledger, Budgets: s.budgets, Metrics: s.metrics}
	out := map[string]http.Handler{}
	limits := server.NewLimits()
	serve := func(path string, handler review.Handler, limits *server.Limits) {
		out[path] = server.NewEndpoint(path[1:], handler, server.EndpointOptions{Limits: limits, Metrics: s.metrics, Log: s.log})
	}
	serve(server.PathMutatePods, pods.ReportDenials(pods.NewMutator(common, s.keys.Keys), s.denials), limits)
	serve(server.PathMutateTemplates, pods.NewTemplates(common), limits)
	serve(server.PathValidatePods, pods.ReportDenials(pods.NewVerifier(common, s.keys, checker), s.denials), limits.Waiting())
	serve(server.PathValidatePolicies, policydocs.New(s.cluster, s.options.Namespace, s.metrics), limits)
	return out
}
