package nodepods

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
)

const nodeName = "gpu-1"

func idOf(name string) string { return fmt.Sprintf("%064x", name) }

// promisedPod returns a pod of the node whose trainer was promised 8Gi of one GPU.
func promisedPod(name string, agent bool) *corev1.Pod {
	l := limits.Default()
	l.Containers = []limits.Container{{Name: "trainer", SliceBytes: 8 << 30, LimitBytes: 8 << 30, GPUs: 1}}
	var env []map[string]string
	for _, v := range l.Env() {
		env = append(env, map[string]string{"name": v.Name, "value": v.Value})
	}
	text, err := json.Marshal(map[string]any{"v": 1, "namespace": "team-a", "guard": map[string]any{"agent": agent, "env": env}})
	if err != nil {
		panic(err)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID("uid-" + name),
			Annotations: map[string]string{api.AnnotationPromise: string(text)}},
		Spec: corev1.PodSpec{NodeName: nodeName},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "trainer", ContainerID: "containerd://" + idOf(name)}}},
	}
}
