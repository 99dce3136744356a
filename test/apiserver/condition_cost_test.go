package apiserver

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/largepods"
)

// crowded are as many annotations as a pod may have, with names as short or as long as prefix makes them.
func crowded(prefix string) map[string]string {
	annotations := map[string]string{}
	for size := 0; size < 240<<10; {
		key := fmt.Sprint(prefix, len(annotations))
		annotations[key] = ""
		size += len(key)
	}
	return annotations
}

// TestConditionCost holds the match conditions against the API server's bound on what CEL may cost, beyond which failurePolicy decides:
// a pod that uses no GPU would be denied, and the mutating webhook would be passed by.
func TestConditionCost(t *testing.T) {
	for name, prefix := range map[string]string{"short": "k", "longer": "example.test/annotation-", "devices": "devices-"} {
		t.Run("annotations with "+name+" names", func(t *testing.T) {
			i := need(t)
			setUpReapply(t, i, "cost-"+name)
			pods := i.Server.Client.CoreV1().Pods("cost-" + name)
			annotations := crowded(prefix)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plain", Annotations: annotations, Finalizers: []string{"example.test/hold"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "x"}}}}
			if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Errorf("%d annotations: create: %v", len(annotations), err)
			}
			patch := func(pod, change string) (*corev1.Pod, error) {
				return pods.Patch(t.Context(), pod, types.MergePatchType, []byte(change), metav1.PatchOptions{})
			}
			if _, err := patch("plain", `{"metadata":{"labels":{"a":"b"}}}`); err != nil {
				t.Errorf("%d annotations: update: %v", len(annotations), err)
			}
			_, err := patch("plain", `{"metadata":{"annotations":{"cdi.k8s.io/gpu":"nvidia.com/gpu=all"}}}`)
			deniedByUs(t, "an annotation that takes devices", err, "an annotation that takes devices")
			if err := pods.Delete(t.Context(), "plain", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
				t.Errorf("delete: %v", err)
			}
			if _, err := patch("plain", `{"metadata":{"finalizers":null}}`); err != nil {
				t.Errorf("its finalizer cannot go: %v", err)
			}
			sliced := asPod(t, podOf(t, "sliced", "cost-"+name, manifests["label"]))
			sliced.Annotations = annotations
			made, err := pods.Create(t.Context(), sliced, metav1.CreateOptions{})
			if err != nil {
				t.Fatalf("%d annotations: create with a slice: %v", len(annotations), err)
			}
			if made.Annotations[api.AnnotationPromise] == "" {
				t.Error("the pod gets no slice")
			}
			after, err := patch("sliced", `{"metadata":{"annotations":{"gpuslice.dev/planned":"{}","a":"b"}}}`)
			if err != nil || after.Annotations[api.AnnotationPlanned] != made.Annotations[api.AnnotationPlanned] {
				t.Errorf("what is planned is changed: %v", err)
			}
		})
	}
}

// TestConditionCostOfLists compares what the API server takes for a large pod without a GPU with what it takes where no condition is
// evaluated. Before conditions had bounds, 60,000 variables took it ten times as long.
func TestConditionCostOfLists(t *testing.T) {
	i := need(t)
	setUpReapply(t, i, "cost-governed")
	const leftOut, plain = "gpu-operator", "cost-plain"
	for _, namespace := range []string{leftOut, plain} {
		if err := i.Server.Namespace(t.Context(), namespace, nil); err != nil {
			t.Fatal(err)
		}
	}
	server, err := i.Server.PID("kube-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	cpu := func() time.Duration {
		used, err := cluster.CPUOf(server)
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	create := func(namespace string, pod *corev1.Pod) error {
		_, err := i.Server.Client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for _, s := range largepods.Shapes() {
		t.Run("a pod of many "+s.Name, func(t *testing.T) {
			size := 500 << 10
			if s.Name == "variables" || s.Name == "resources" {
				size = 1300 << 10 // these were the slowest; more of some others takes the API server a minute by itself
			}
			pod, entries := s.Pod("large", size)
			used := map[string]time.Duration{}
			for _, namespace := range []string{leftOut, plain} {
				begin := cpu()
				if err := create(namespace, pod); err != nil {
					t.Fatalf("%d entries in %s: %.500v", entries, namespace, err)
				}
				used[namespace] = cpu() - begin
			}
			t.Logf("%d entries: %s, without conditions %s", entries, used[plain], used[leftOut])
			if used[plain] > 2*used[leftOut]+time.Second {
				t.Errorf("%d entries take %s of the API server's CPU time, and %s without conditions", entries, used[plain], used[leftOut])
			}
		})
	}
	t.Run("escapes no review", func(t *testing.T) {
		pods := i.Server.Client.CoreV1().Pods("cost-governed")
		const stored = 17_000 // nearly as many as etcd takes: each stands in the managed fields as well
		for _, tc := range []struct {
			name             string
			containers, each int
		}{{"one", 1, stored}, {"many", 100, stored / 100}} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: tc.name}}
			for c := range tc.containers {
				crowded := corev1.Container{Name: fmt.Sprint("c", c), Image: "x"}
				for e := range tc.each {
					crowded.Env = append(crowded.Env, corev1.EnvVar{Name: fmt.Sprint("NVIDIB_", e)})
				}
				pod.Spec.Containers = append(pod.Spec.Containers, crowded)
			}
			last := &pod.Spec.Containers[tc.containers-1].Env[tc.each-1]
			last.Name, last.Value = "NVIDIA_VISIBLE_DEVICES", "all"
			made, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
			if err != nil {
				t.Fatalf("%s: %v", tc.name, err)
			}
			if got := made.Spec.Containers[tc.containers-1].Env[tc.each-1]; got.Value != "void" {
				t.Errorf("%s: the container sees the devices %q", tc.name, got.Value)
			}
			if _, err := pods.Patch(t.Context(), tc.name, types.MergePatchType,
				[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
				t.Errorf("%s: change a label: %v", tc.name, err)
			}
			_, err = pods.Patch(t.Context(), tc.name, types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"cdi.k8s.io/gpu":"nvidia.com/gpu=all"}}}`), metav1.PatchOptions{})
			deniedByUs(t, tc.name, err, "an annotation that takes devices")
			abuse.Report(t,
				abuse.Attempt{Threat: "A16", Attack: fmt.Sprintf("devices by the last of %d variables in %d containers", stored, tc.containers),
					Outcome: abuse.Contained, Words: "the container sees no device"})
		}
		for name, add := range map[string]func(*corev1.Pod){
			"a mount among many": func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
				for n := range 5000 {
					p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts,
						corev1.VolumeMount{Name: "v", MountPath: fmt.Sprint("/m", n)})
				}
				p.Spec.Containers[0].VolumeMounts[4999].MountPath = "/var/run/nvidia-container-devices/all"
			},
			"an init container among many": func(p *corev1.Pod) {
				for n := range 2000 {
					p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: fmt.Sprint("i", n), Image: "x"})
				}
				p.Spec.InitContainers[1999].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/var/run/nvidia-container-devices/all"}}
				p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			},
		} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "x"}}}}
			add(pod)
			deniedByUs(t, name, create("cost-governed", pod), "a mount that takes devices")
		}
	})
}
