package cluster

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// Namespace makes a namespace with labels and the default ServiceAccount without which no pod is accepted
// there (elsewhere the controller manager makes that one).
func (s *APIServer) Namespace(ctx context.Context, name string, labels map[string]string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := s.Client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return s.DefaultAccount(ctx, name)
}

// DefaultAccount makes the default ServiceAccount of a namespace that came from elsewhere (a manifest), and
// waits for the namespace if need be.
func (s *APIServer) DefaultAccount(ctx context.Context, namespace string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := s.Client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return true, err
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create default service account in %s: %w", namespace, err)
	}
	return nil
}

// As returns a client configuration that acts as somebody else, with that user's rights only.
func (s *APIServer) As(name string, groups ...string) *rest.Config {
	c := rest.CopyConfig(s.Config)
	c.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: append(groups, "system:authenticated")}
	return c
}

// ServiceAccount returns a client configuration with a real token of an existing ServiceAccount, valid for
// a day.
func (s *APIServer) ServiceAccount(ctx context.Context, namespace, name string) (*rest.Config, error) {
	seconds := int64(24 * 60 * 60)
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	got, err := s.Client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, req, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("get token of service account %s/%s: %w", namespace, name, err)
	}
	return restConfig(s.Config.Host, s.Config.CAFile, got.Status.Token), nil
}
