package claimtemplates

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

// watchPods returns the informer of pods with a slice, with their claims alone.
func watchPods(client kubernetes.Interface, changed func()) (cache.SharedIndexInformer, error) {
	informer := coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{},
		func(o *metav1.ListOptions) { o.LabelSelector = api.LabelTier })
	if err := informer.SetTransform(slimPod); err != nil {
		return nil, fmt.Errorf("set transform of pods: %w", err)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		if pod, ok := object.(*corev1.Pod); ok && len(pod.Spec.ResourceClaims) > 0 {
			changed()
		}
	}})
	return informer, err
}

// nameTemplates reports whether a pod with a slice names templates.
func nameTemplates(ctx context.Context, client kubernetes.Interface) (bool, error) {
	o := metav1.ListOptions{LabelSelector: api.LabelTier, Limit: 500}
	for {
		list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
		if err != nil {
			return false, fmt.Errorf("list pods with a slice: %w", err)
		}
		for i := range list.Items {
			if len(wanted([]any{&list.Items[i]})) > 0 {
				return true, nil
			}
		}
		if o.Continue = list.Continue; o.Continue == "" {
			return false, nil
		}
	}
}

func slimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Spec:       corev1.PodSpec{ResourceClaims: pod.Spec.ResourceClaims},
		Status:     corev1.PodStatus{Phase: pod.Status.Phase},
	}, nil
}

// templates are ResourceClaimTemplates by name.
type templates map[string]*resourcev1.ResourceClaimTemplate

// wanted are the templates that pods name, by namespace.
func wanted(pods []any) map[string]templates {
	out := map[string]templates{}
	for _, object := range pods {
		pod, ok := object.(*corev1.Pod)
		if !ok || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, t := range (policies.Input{Pod: pod}).ClaimTemplates() {
			if out[t.Namespace] == nil {
				out[t.Namespace] = templates{}
			}
			out[t.Namespace][t.Name] = t
		}
	}
	return out
}

// inTurn lists the templates so that the first of each namespace comes before the second of any: no namespace makes others wait.
func inTurn(byNamespace map[string]templates) []*resourcev1.ResourceClaimTemplate {
	type turn struct {
		n        int
		template *resourcev1.ResourceClaimTemplate
	}
	var turns []turn
	for _, all := range byNamespace {
		for n, name := range slices.Sorted(maps.Keys(all)) {
			turns = append(turns, turn{n, all[name]})
		}
	}
	slices.SortFunc(turns, func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.template.Namespace, b.template.Namespace))
	})
	out := make([]*resourcev1.ResourceClaimTemplate, len(turns))
	for i := range turns {
		out[i] = turns[i].template
	}
	return out
}
