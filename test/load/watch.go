package load

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/gpuslice/gpuslice/policies"
)

// census counts the living slices of each namespace, in the order in which etcd stored them.
type census struct {
	mu     sync.Mutex
	alive  map[string]map[types.UID]bool
	most   map[string]int
	broken error
}

// count follows all pods until ctx ends.
func count(ctx context.Context, client kubernetes.Interface) (*census, error) {
	c := &census{alive: map[string]map[types.UID]bool{}, most: map[string]int{}}
	begin, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, begin.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, o)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	go func() {
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			c.see(event.Type, event.Object)
		}
	}()
	return c, nil
}

func (c *census) see(kind watch.EventType, object runtime.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pod, ok := object.(*corev1.Pod)
	if !ok {
		c.broken = fmt.Errorf("the watch lost its place: %v", object)
		return
	}
	if c.alive[pod.Namespace] == nil {
		c.alive[pod.Namespace] = map[types.UID]bool{}
	}
	here := c.alive[pod.Namespace]
	over := kind == watch.Deleted || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if over || pod.Annotations[policies.AnnotationPromise] == "" {
		delete(here, pod.UID)
		return
	}
	here[pod.UID] = true
	c.most[pod.Namespace] = max(c.most[pod.Namespace], len(here))
}

// of says how many slices live in a namespace, and the most that ever did.
func (c *census) of(namespace string) (now, most int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.alive[namespace]), c.most[namespace], c.broken
}
