package uninstall

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
)

// waitForNamespace waits until the namespace is gone, and prints the remaining objects: an installation into one that
// is being removed fails, and leaves webhooks that nothing answers.
func (r *remover) waitForNamespace(ctx context.Context) error {
	said := ""
	err := wait.PollUntilContextTimeout(ctx, r.interval, r.wait, true, func(ctx context.Context) (bool, error) {
		ns, err := r.client.Resource(namespaces).Get(ctx, r.system, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			fmt.Fprintf(r.out, "namespace/%s removed\n", r.system)
			return true, nil
		case err != nil:
			return false, nil // until the deadline: the API server may be busy
		case ns.GetDeletionTimestamp() == nil:
			return false, fmt.Errorf("namespace %s was created again", r.system)
		}
		if text := remaining(ns); text != said {
			said = text
			fmt.Fprintf(r.out, "waiting for namespace/%s: %s\n", r.system, text)
		}
		return false, nil
	})
	if wait.Interrupted(err) {
		fmt.Fprintf(r.out, "namespace/%s is not removed after %s: %s\n", r.system, r.wait.Round(time.Second), said)
		return fmt.Errorf("wait for namespace %s: %w", r.system, err)
	}
	return err
}

// remaining names the obstacle to a namespace's removal, by its own conditions.
func remaining(ns *unstructured.Unstructured) string {
	conditions, _, err := unstructured.NestedSlice(ns.Object, "status", "conditions")
	if err != nil {
		conditions = nil
	}
	var texts []string
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if !ok || condition["status"] != "True" {
			continue
		}
		if message, ok := condition["message"].(string); ok {
			texts = append(texts, message)
		}
	}
	if len(texts) == 0 {
		return "Kubernetes removes what is in it"
	}
	return strings.Join(texts, "; ")
}
