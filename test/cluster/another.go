package cluster

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Another starts a second kube-apiserver on the etcd of s, as control planes that are highly available have it, and
// returns the administrator's access to it once it is ready. It knows the same users, and reaches the same endpoints behind
// Services. It ends with s. A cluster has two at most; one inside a box has one.
func (s *APIServer) Another(ctx context.Context) (*rest.Config, error) {
	if s.egress == nil {
		return nil, fmt.Errorf("start a second API server: there is one on a node")
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(s.Config)
	config.Host = fmt.Sprintf("https://127.0.0.1:%d", ports[0])
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	// Of a flag that is given twice the later counts.
	if err := s.startAs("kube-apiserver-2", "kube-apiserver",
		append(s.flags[:len(s.flags):len(s.flags)], fmt.Sprintf("--secure-port=%d", ports[0]))...); err != nil {
		return nil, err
	}
	return config, s.await(ctx, client)
}
