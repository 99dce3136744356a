package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies/promise"
)

// claimed are the devices of a pod's claims, which stay the same as long as the pod is on its node.
type claimed struct {
	uid       types.UID
	instances []string
}

// instances returns the containers of a pod that got a MIG instance where a share was allowed too. The scheduler's
// allocation is in the status of claims, which no tenant may write.
func (s *session) instances(ctx context.Context, key string, pod *corev1.Pod, given *promise.Promise) ([]string, error) {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil, nil
	}
	s.mu.Lock()
	known, ok := s.claimed[key]
	s.mu.Unlock()
	if ok && known.uid == pod.UID {
		return known.instances, nil
	}
	var out []string
	asked := false
	for i := range given.Containers {
		c := &given.Containers[i]
		name := claimNamed(pod, c.Claim)
		if name == "" || c.Instance() == "" {
			continue
		}
		asked = true
		claim, err := s.claim(ctx, pod.Namespace, name)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("read what a claim was given: %w", err)
		case metav1.IsControlledBy(claim, pod) && c.GotInstance(claim):
			out = append(out, c.Name)
		}
	}
	if !asked { // as of most pods: nothing is to be remembered
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claimed[key] = claimed{pod.UID, out}
	return out, nil
}

// claim is a claim of a pod on a node. The cache may be older than the allocation: then the claim is read from the API
// server.
func (s *session) claim(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error) {
	if s.options.Claims != nil {
		if claim := s.options.Claims(namespace, name); claim != nil && claim.Status.Allocation != nil {
			return claim, nil
		}
	}
	return s.options.Client.ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
}

// claimNamed returns the name of the ResourceClaim that Kubernetes made for a claim of the pod; "": none yet.
func claimNamed(pod *corev1.Pod, claim string) string {
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.Name == claim && s.ResourceClaimName != nil {
			return *s.ResourceClaimName
		}
	}
	return ""
}
