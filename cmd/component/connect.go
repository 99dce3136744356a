package component

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// FindServer finds the API server: by the kubeconfig, or without one by the pod's ServiceAccount.
func FindServer(kubeconfig, userAgent string, qps float32, burst int) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	config.UserAgent, config.QPS, config.Burst = userAgent, qps, burst
	return config, nil
}

// Connect makes a client for Kubernetes' own kinds.
func Connect(config *rest.Config) (kubernetes.Interface, error) {
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return client, nil
}
