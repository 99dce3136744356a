package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
)

// census counts the living slices of each namespace, in the order in which etcd stored them.
type census struct {
	mu    sync.Mutex
	alive map[string]map[types.UID]bool
	most  map[string]int
}

// count follows all pods until ctx ends. Where the API server does not know what happened since, as after a restart, it
// goes on from a list: what lived and went in between is not counted.
func count(ctx context.Context, client kubernetes.Interface) (*census, error) {
	c := &census{alive: map[string]map[types.UID]bool{}, most: map[string]int{}}
	version, err := c.list(ctx, client)
	if err != nil {
		return nil, err
	}
	go func() {
		for ctx.Err() == nil {
			if version == "" {
				if version, err = c.list(ctx, client); err != nil {
					pause(ctx, 50*time.Millisecond)
					continue
				}
			}
			version = c.follow(ctx, client, version)
		}
	}()
	return c, nil
}

// list counts again.
func (c *census) list(ctx context.Context, client kubernetes.Interface) (version string, err error) {
	found, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list pods: %w", err)
	}
	c.mu.Lock()
	clear(c.alive)
	c.mu.Unlock()
	for i := range found.Items {
		c.see(watch.Added, &found.Items[i])
	}
	return found.ResourceVersion, nil
}

// follow counts from a version on, until the server has no more to say. It returns the version to go on from, or "".
func (c *census) follow(ctx context.Context, client kubernetes.Interface, version string) string {
	w, err := client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return ""
	}
	if err != nil {
		pause(ctx, 50*time.Millisecond)
		return version
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return ""
		}
		version = pod.ResourceVersion
		c.see(event.Type, pod)
	}
	return version
}

func (c *census) see(kind watch.EventType, pod *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alive[pod.Namespace] == nil {
		c.alive[pod.Namespace] = map[types.UID]bool{}
	}
	here := c.alive[pod.Namespace]
	over := kind == watch.Deleted || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if over || pod.Annotations[api.AnnotationPromise] == "" {
		delete(here, pod.UID)
		return
	}
	here[pod.UID] = true
	c.most[pod.Namespace] = max(c.most[pod.Namespace], len(here))
}

// of returns how many slices live in a namespace, and the most that ever did.
func (c *census) of(namespace string) (now, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.alive[namespace]), c.most[namespace]
}
