package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
)

// documents are the versions of the policies that were written, by name.
type documents map[string]string

// write writes a policy document as a ConfigMap of the system namespace.
func (d documents) write(ctx context.Context, client kubernetes.Interface, name string, document []byte) error {
	return d.put(ctx, client, PolicyObject(name, document))
}

// PolicyObject is the ConfigMap of the system namespace with a policy document.
func PolicyObject(name string, document []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: name, Labels: map[string]string{api.LabelPolicy: "true"}},
		Data:       map[string]string{api.PolicyKey: string(document)},
	}
}

// put writes a ConfigMap and keeps its version.
func (d documents) put(ctx context.Context, client kubernetes.Interface, cm *corev1.ConfigMap) error {
	maps := client.CoreV1().ConfigMaps(cm.Namespace)
	written, err := maps.Create(ctx, cm, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		written, err = maps.Update(ctx, cm, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write policy %s: %w", cm.Name, err)
	}
	d[cm.Namespace+"/"+cm.Name] = written.ResourceVersion
	return nil
}

// missing names the policy that s does not know as it was last written, or cannot use; nil: none.
func (d documents) missing(s State) error {
	for name, version := range d {
		all := slices.Concat(s.Policies, s.Tenants)
		i := slices.IndexFunc(all, func(p PolicyState) bool { return p.Name == name && p.ResourceVersion == version })
		if i < 0 {
			return fmt.Errorf("policy %s has not been read", name)
		}
		if all[i].Error != "" {
			return fmt.Errorf("policy %s: %s", name, all[i].Error)
		}
	}
	return nil
}

// AwaitWebhook returns once every replica of the Deployment is ready.
func (n *OnNode) AwaitWebhook(ctx context.Context) error {
	return n.until(ctx, "the webhook's pods", func() error {
		d, err := n.Client.AppsV1().Deployments(api.SystemNamespace).Get(ctx, service, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := d.Status; s.ReadyReplicas != *d.Spec.Replicas || s.UpdatedReplicas != *d.Spec.Replicas {
			return fmt.Errorf("%d of %d are ready", s.ReadyReplicas, *d.Spec.Replicas)
		}
		return nil
	})
}

// AwaitQuota returns once every replica of the webhook knows the ResourceQuota on a GPU resource.
func (n *OnNode) AwaitQuota(ctx context.Context, namespace, name string) error {
	return n.until(ctx, "the webhook to know resource quota "+name, func() error {
		pods, err := n.webhookPods(ctx)
		if err != nil {
			return err
		}
		for _, p := range pods {
			s, err := stateOf(ctx, p.Status.PodIP)
			if err != nil {
				return fmt.Errorf("pod %s: %w", p.Name, err)
			}
			if s.ResourceQuota(namespace, name) == "" {
				return fmt.Errorf("pod %s does not know it", p.Name)
			}
		}
		return nil
	})
}

// Settle returns once every replica of the webhook knows the policies that were written and pools of the resources.
func (n *OnNode) Settle(ctx context.Context, resources ...string) error {
	return n.until(ctx, "the webhook to know policies and pools", func() error {
		pods, err := n.webhookPods(ctx)
		if err != nil {
			return err
		}
		for _, p := range pods {
			if err := n.settled(ctx, p.Status.PodIP, resources); err != nil {
				return fmt.Errorf("pod %s: %w", p.Name, err)
			}
		}
		return nil
	})
}

func (n *OnNode) settled(ctx context.Context, address string, resources []string) error {
	s, err := stateOf(ctx, address)
	if err != nil {
		return err
	}
	for _, name := range resources {
		if !slices.ContainsFunc(s.Pools, func(p PoolState) bool { return p.Resource == name }) {
			return fmt.Errorf("no pool of %s is known", name)
		}
	}
	return n.documents.missing(s)
}

// stateOf reads the knowledge of the webhook at a pod's address.
func stateOf(ctx context.Context, address string) (State, error) {
	var s State
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+":8080/state", nil)
	if err != nil {
		return s, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(body, &s)
}

// until repeats reached until it has nothing to object to, or ctx ends.
func (n *OnNode) until(ctx context.Context, what string, reached func() error) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := reached()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, errors.Join(err, context.Cause(ctx)))
		case <-again.C:
		}
	}
}
