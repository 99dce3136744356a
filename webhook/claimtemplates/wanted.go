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
	"k8s.io/apimachinery/pkg/types"
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
		if k, ok := object.(*keptPod); ok && len(k.claims) > 0 {
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
			pod, err := slimPod(&list.Items[i])
			if err != nil || len(wanted([]any{pod})) > 0 {
				return err == nil, err
			}
		}
		if o.Continue = list.Continue; o.Continue == "" {
			return false, nil
		}
	}
}

// keptPod is what is kept of a pod: with its other fields, those of all pods would be a large part of the leader's memory.
type keptPod struct {
	namespace, name, version string
	uid                      types.UID
	claims                   []corev1.PodResourceClaim // nil: it has ended
}

func slimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := &keptPod{namespace: pod.Namespace, name: pod.Name, version: pod.ResourceVersion, uid: pod.UID}
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		kept.claims = pod.Spec.ResourceClaims
	}
	return kept, nil
}

// GetObjectMeta implements metav1.ObjectMetaAccessor, by which informers know their objects.
func (k *keptPod) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: k.namespace, Name: k.name, UID: k.uid, ResourceVersion: k.version}
}

// templates are ResourceClaimTemplates by name.
type templates map[string]*resourcev1.ResourceClaimTemplate

// wanted are the templates that pods name, by namespace.
func wanted(pods []any) map[string]templates {
	out := map[string]templates{}
	for _, object := range pods {
		k, ok := object.(*keptPod)
		if !ok || len(k.claims) == 0 {
			continue
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: k.name, UID: k.uid}, Spec: corev1.PodSpec{ResourceClaims: k.claims}}
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
