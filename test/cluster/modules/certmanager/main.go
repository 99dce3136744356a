// Command certmanager runs the parts of cert-manager that issue certificates and inject CA bundles: its own controllers
// and cainjector, from its public packages, in one process. The project's own commands live in modules that no proxy
// serves.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/pkg/client/clientset/versioned/scheme"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/util/feature"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	flags := flag.NewFlagSet("certmanager", flag.ExitOnError) // the global one has controller-runtime's
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server")
	gates := flags.String("feature-gates", "", "cert-manager's own, such as CAInjectorMerging=false")
	_ = flags.Parse(os.Args[1:])
	ctrl.SetLogger(klog.Background())
	ctx, stop := signal.NotifyContext(logf.NewContext(context.Background(), klog.Background()), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := feature.DefaultMutableFeatureGate.Set(*gates)
	if err == nil {
		err = run(ctx, *kubeconfig)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "certmanager:", err)
		os.Exit(1)
	}
}

// run starts everything, and returns once one part has ended and the cainjector has released its Lease.
func run(ctx context.Context, kubeconfig string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(controller.Known()))
	if err := issue(ctx, kubeconfig, ended); err != nil {
		return err
	}
	manager, err := cainjectorManager(ctx, kubeconfig)
	if err != nil {
		return err
	}
	injected := make(chan error, 1)
	go func() { injected <- manager.Start(ctx) }()
	select {
	case err := <-ended:
		stop()
		return errors.Join(err, <-injected)
	case err := <-injected:
		return err
	}
}

// issue starts the controllers of certificates and issuers. Their back-offs are short: a test's damage is to be
// repaired within its time.
func issue(ctx context.Context, kubeconfig string, ended chan<- error) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:    kubeconfig,
		IssuerOptions: controller.IssuerOptions{ClusterResourceNamespace: "cert-manager"},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: time.Second,
			CertificateRequestMaximumBackoffDuration: 10 * time.Second,
		},
	})
	if err != nil {
		return fmt.Errorf("prepare controllers: %w", err)
	}
	for name, build := range controller.Known() {
		c, err := build(factory)
		if err != nil {
			return fmt.Errorf("build controller %s: %w", name, err)
		}
		go func() { ended <- c.Run(2, ctx) }()
	}
	shared, err := factory.Build()
	if err != nil {
		return fmt.Errorf("build informers: %w", err)
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	return nil
}

// cainjectorManager makes the cainjector for webhook configurations.
func cainjectorManager(ctx context.Context, kubeconfig string) (ctrl.Manager, error) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubernetes.AddToScheme, scheme.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme} {
		if err := add(known); err != nil {
			return nil, fmt.Errorf("learn types: %w", err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.UserAgent = "cainjector"
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: known,
		// As cert-manager's own command: a cainjector that was stopped has released its Lease.
		LeaseDuration: new(time.Minute), RenewDeadline: new(40 * time.Second), RetryPeriod: new(5 * time.Second),
		LeaderElection:                true,
		LeaderElectionID:              "cert-manager-cainjector-leader-election",
		LeaderElectionNamespace:       "kube-system",
		LeaderElectionReleaseOnCancel: true,
		Cache:                         cache.Options{ReaderFailOnMissingInformer: true},
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Metrics:                       server.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	err = cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("register injectors: %w", err)
	}
	return manager, nil
}
