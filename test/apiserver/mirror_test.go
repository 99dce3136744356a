package apiserver

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// guardMirror is the one that the installation lists.
const guardMirror = "mirror.test/hub/guard"

// mirrored points every image of a pod to a registry, as image swappers do.
func mirrored(registry string) func(*corev1.Pod) {
	return intoEvery(func(c *corev1.Container) { c.Image = registry + "/" + c.Image[strings.LastIndexByte(c.Image, '/')+1:] })
}

// TestImageSwapper has a webhook of somebody else's move every image to a mirror, before and after gpuslice.
func TestImageSwapper(t *testing.T) {
	for _, c := range []struct {
		name, hook, registry string
		again                admissionregistrationv1.ReinvocationPolicyType
		want                 string // the guard's image; "": the pod is denied
	}{
		{"before gpuslice", "a-swaps", "mirror.test/hub", admissionregistrationv1.IfNeededReinvocationPolicy, guardMirror + ":test"},
		{"after gpuslice", "z-swaps", "mirror.test/hub", admissionregistrationv1.IfNeededReinvocationPolicy, guardMirror + ":test"},
		{"after gpuslice, once", "z-once", "mirror.test/hub", admissionregistrationv1.NeverReinvocationPolicy, guardMirror + ":test"},
		{"to a registry that is not listed", "z-other", "other.test/hub", admissionregistrationv1.IfNeededReinvocationPolicy, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := need(t)
			namespace := "images-" + c.hook
			setUpReapply(t, i, namespace)
			neighbor(t, i, c.hook, namespace, c.again, mirrored(c.registry))
			_, err := i.Apply.Create(t.Context(), podOf(t, "p", namespace, manifests["label"]), metav1.CreateOptions{})
			if c.want == "" {
				if err == nil || !strings.Contains(err.Error(), `gpuslice-check, gpuslice-guard has image "other.test/hub/guard:test" in place of "gpuslice/guard:test"; another webhook rewrites images`) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			pod, err := i.Server.Client.CoreV1().Pods(namespace).Get(t.Context(), "p", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var images []string
			for _, c := range pod.Spec.InitContainers {
				images = append(images, c.Image)
			}
			if want := c.want + " " + c.want; strings.Join(images, " ") != want || pod.Annotations[api.AnnotationPlanned] == "" {
				t.Errorf("%q, %v", images, pod.Annotations)
			}
		})
	}
}
