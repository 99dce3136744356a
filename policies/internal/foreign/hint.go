package foreign

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// maxHints bounds what a pod is answered with.
const maxHints = 8

// word is one under which a system is asked.
type word[T any] struct {
	system string
	read   func(T) string
}

var resources, words = index()

func index() (map[corev1.ResourceName]word[resource.Quantity], map[string]word[string]) {
	resources, words := map[corev1.ResourceName]word[resource.Quantity]{}, map[string]word[string]{}
	for _, s := range Systems() {
		for name, read := range s.Resources {
			resources[corev1.ResourceName(name)] = word[resource.Quantity]{s.Name, read}
		}
		for name, read := range s.Words {
			words[name] = word[string]{s.Name, read}
		}
	}
	return resources, words
}

// Hints says of each request in another system's words what to write instead, sorted.
func Hints(pod *corev1.Pod) (hints []string) {
	for c := range podspec.Containers(&pod.Spec) {
		for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
			for name, q := range list {
				if w, ok := resources[name]; ok && len(hints) < 2*maxHints {
					hints = append(hints, fmt.Sprintf("container %q: %s", c.Name, hint(string(name), w.system, w.read(q))))
				}
			}
		}
	}
	for _, texts := range []map[string]string{pod.Annotations, pod.Labels} {
		for name, text := range texts {
			if w, ok := words[name]; ok {
				hints = append(hints, hint(name, w.system, w.read(text)))
			}
		}
	}
	slices.Sort(hints)
	hints = slices.Compact(hints)
	return hints[:min(len(hints), maxHints)]
}

func hint(name, system, instead string) string {
	return fmt.Sprintf("%s is read by %s, not by gpuslice; for a slice write %s", name, system, cmp.Or(instead, "one of gpuslice's labels"))
}
