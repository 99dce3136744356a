// Package largepods makes pods without a GPU that are as large as somebody wants them, each in one of the lists that match conditions
// and policies of the API server go through.
package largepods

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Shape is a way for a pod to be large.
type Shape struct {
	Name string
	// Most is the number of entries that the API server takes, whatever their size; 0: as many as fit into a request.
	Most int
	// add adds the entry of a number to the pod.
	add func(pod *corev1.Pod, n int)
}

// Shapes returns all ways, the slowest first.
func Shapes() []Shape {
	return []Shape{
		{Name: "variables", add: func(p *corev1.Pod, n int) {
			p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("N", n)})
		}},
		{Name: "variables of many containers", add: func(p *corev1.Pod, n int) {
			const each = 400
			if c := n / each; c == len(p.Spec.Containers) {
				p.Spec.Containers = append(p.Spec.Containers, container(fmt.Sprint("c", c)))
			}
			last := &p.Spec.Containers[n/each]
			last.Env = append(last.Env, corev1.EnvVar{Name: fmt.Sprint("N", n)})
		}},
		{Name: "resources", add: func(p *corev1.Pod, n int) {
			if n == 0 {
				p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{}
			}
			p.Spec.Containers[0].Resources.Limits[corev1.ResourceName(fmt.Sprint("example.test/r", n))] = resource.MustParse("1")
		}},
		{Name: "mounts", add: func(p *corev1.Pod, n int) {
			if n == 0 {
				p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			}
			p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts,
				corev1.VolumeMount{Name: "v", MountPath: fmt.Sprint("/m", n)})
		}},
		{Name: "containers", add: func(p *corev1.Pod, n int) {
			p.Spec.Containers = append(p.Spec.Containers, container(fmt.Sprint("c", n+1)))
		}},
		{Name: "init containers", add: func(p *corev1.Pod, n int) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, container(fmt.Sprint("i", n)))
		}},
		{Name: "annotations", Most: 40_000,
			add: func(p *corev1.Pod, n int) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, fmt.Sprint("k", n), "") }},
		{Name: "labels", add: func(p *corev1.Pod, n int) { metav1.SetMetaDataLabel(&p.ObjectMeta, fmt.Sprint("k", n), "") }},
		{Name: "sources of variables", add: func(p *corev1.Pod, n int) {
			p.Spec.Containers[0].EnvFrom = append(p.Spec.Containers[0].EnvFrom,
				corev1.EnvFromSource{
					ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprint("m", n)}},
				})
		}},
		{Name: "volumes", add: func(p *corev1.Pod, n int) {
			p.Spec.Volumes = append(p.Spec.Volumes,
				corev1.Volume{Name: fmt.Sprint("v", n), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		}},
		{Name: "claims", add: func(p *corev1.Pod, n int) {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims,
				corev1.PodResourceClaim{Name: fmt.Sprint("c", n), ResourceClaimTemplateName: new("t")})
		}},
		{Name: "tolerations", add: func(p *corev1.Pod, n int) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprint("k", n), Operator: corev1.TolerationOpExists})
		}},
		{Name: "node selector", add: func(p *corev1.Pod, n int) {
			if n == 0 {
				p.Spec.NodeSelector = map[string]string{}
			}
			p.Spec.NodeSelector[fmt.Sprint("k", n)] = ""
		}},
		{Name: "one value", add: func(p *corev1.Pod, n int) {
			if n == 0 {
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LONG"}}
			}
			p.Spec.Containers[0].Env[0].Value += strings.Repeat("x", 1000)
		}},
	}
}

func container(name string) corev1.Container { return corev1.Container{Name: name, Image: "x"} }

// Pod returns a pod of about so many bytes of JSON, and the number of its entries.
func (s Shape) Pod(name string, bytes int) (*corev1.Pod, int) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{container("c0")}}}
	for n, check := 0, 64; ; n++ {
		if s.Most > 0 && n == s.Most {
			return pod, n
		}
		if n == check {
			size := sizeOf(pod)
			if size >= bytes {
				return pod, n
			}
			check += max(1, (bytes-size)*n/size)
		}
		s.add(pod, n)
	}
}

func sizeOf(pod *corev1.Pod) int {
	text, err := json.Marshal(pod)
	if err != nil {
		panic(err) // nothing in a pod of these shapes cannot be written
	}
	return len(text)
}
