package main

import (
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/cmd/component"
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
	writerRate    = rate{5, 10}   // device classes, and the records of a day
	closingRate   = rate{50, 100} // an annotation of each namespace, in which GPUs can be claimed until it is written
	templatesRate = rate{20, 40}  // templates of claims, for which pods wait
	unlimited     = rate{qps: -1}
)

// connect makes a client whose answers carry the API server's time.
func (s *Setup) connect(r rate) (kubernetes.Interface, error) {
	config, err := s.findServer(r)
	if err != nil {
		return nil, err
	}
	return component.Connect(config)
}

// connectObjects makes a client for kinds that are not Kubernetes' own.
func (s *Setup) connectObjects(r rate) (dynamic.Interface, error) {
	config, err := s.findServer(r)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return client, nil
}

func (s *Setup) findServer(r rate) (*rest.Config, error) {
	config, err := component.FindServer(s.options.Kubeconfig, "gpuslice-webhook/"+version, r.qps, r.burst)
	if err != nil {
		return nil, err
	}
	config.Wrap(s.clock.Wrap)
	config.Wrap(bounded.Limit)
	return config, nil
}
