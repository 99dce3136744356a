package main

import (
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"github.com/gpuslice/gpuslice/webhook/bounded"
)

// rate limits the requests of a client to the API server.
type rate struct {
	qps   float32
	burst int
}

var (
	clientRate    = rate{50, 100} // a burst when it starts, next to none afterwards
	observerRate  = rate{20, 40}  // annotations and Events: a pod that starts costs one of each at most
	eventsRate    = rate{10, 20}  // Events on the owners of denied pods, and who those owners are
	writerRate    = rate{5, 10}   // ResourceQuotas, where policy has them written
	auditRate     = rate{5, 10}   // pages of pods, and a Report of each audited namespace: nobody waits for them
	templatesRate = rate{20, 40}  // templates of claims, for which pods wait
	unlimited     = rate{qps: -1}
)

// connect makes a client of the API server. wrap sees every answer.
func connect(kubeconfig string, r rate, wrap transport.WrapperFunc) (kubernetes.Interface, error) {
	config, err := configOf(kubeconfig, r, wrap)
	if err != nil {
		return nil, err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return client, nil
}

// connectObjects makes a client for kinds that are not Kubernetes' own.
func connectObjects(kubeconfig string, r rate, wrap transport.WrapperFunc) (dynamic.Interface, error) {
	config, err := configOf(kubeconfig, r, wrap)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return client, nil
}

// configOf finds the API server.
func configOf(kubeconfig string, r rate, wrap transport.WrapperFunc) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	config.QPS, config.Burst = r.qps, r.burst
	config.Wrap(wrap)
	config.Wrap(bounded.Limit)
	config.UserAgent = "gpuslice-webhook/" + version
	return config, nil
}
