package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// job creates a Job of one try, and returns the name of its pod once there is one.
func (s *stage) job(name string, p *corev1.Pod) (pod string) {
	s.Helper()
	none := int32(0)
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{BackoffLimit: &none,
		Template: corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}}}
	j.Spec.Template.Name = ""
	if _, err := s.node.Client.BatchV1().Jobs(s.namespace).Create(s.Context(), j, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	await(s, "pods", "", "pod of job "+name, &corev1.Pod{}, func(p *corev1.Pod) bool {
		pod = p.Name
		return p.Labels["job-name"] == name
	})
	return pod
}

// awaitJob waits until a Job has a condition.
func (s *stage) awaitJob(name string, condition batchv1.JobConditionType) {
	s.Helper()
	w, err := s.node.Client.BatchV1().Jobs(s.namespace).Watch(s.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		s.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		j, ok := e.Object.(*batchv1.Job)
		for i := 0; ok && i < len(j.Status.Conditions); i++ {
			c := j.Status.Conditions[i]
			switch {
			case c.Status != corev1.ConditionTrue:
			case c.Type == condition:
				return
			case c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed:
				s.Fatalf("job %s is %s: %s", name, c.Type, c.Message)
			}
		}
	}
	s.Fatalf("job %s: the watch ended", name)
}

func TestJob(t *testing.T) {
	t.Parallel()
	t.Run("completes with the guard", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		pod := s.job("train", once(slice("8Gi", "train", sliced("trainer", "hold 4GiB", "wait 2s", "leave"))))
		if containerOf(s.get(pod), limits.GuardContainer) == nil {
			t.Error("no guard was injected")
		}
		s.awaitJob("train", batchv1.JobComplete)
	})
}

func TestJobWithFailedCheck(t *testing.T) {
	t.Parallel()
	t.Run("ends with the reason", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices, Fault: fakegpu.Fault{Memory: 40 * fakegpu.GiB}})
		pod := s.job("train", once(slice("8Gi", "train", sliced("trainer", "hold 4GiB"))))
		s.awaitJob("train", batchv1.JobFailed)
		p := s.get(pod)
		end := status(p, limits.CheckContainer).State.Terminated
		if end == nil || !strings.Contains(end.Message, "has 40Gi, and the plan needs at least") {
			t.Errorf("the check ended as %+v", end)
		}
		if ran := status(p, "trainer").State; ran.Terminated != nil || ran.Running != nil {
			t.Errorf("the tenant ran all the same: %+v", ran)
		}
	})
}

// Not parallel: the node has one device for as long as it runs.
func TestReplicas(t *testing.T) {
	t.Run("four guarded pods run on four", func(t *testing.T) {
		s := newStage(t, "", fakegpu.Config{Devices: 1})
		if err := s.node.Offer(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), within)
			defer cancel()
			if err := s.node.Offer(ctx, devices); err != nil {
				t.Error(err)
			}
		})
		for i := range 4 {
			s.create(slice("8Gi", fmt.Sprint("pod-", i), sliced("trainer", "hold 4GiB")))
		}
		for i := range 4 {
			s.awaitRunning(fmt.Sprint("pod-", i))
		}
		s.create(slice("8Gi", "fifth", sliced("trainer", "hold 4GiB")))
		s.awaitPod("fifth", "message that says what is missing", unschedulable)
	})
}

func TestCheckDevice(t *testing.T) {
	t.Parallel()
	t.Run("is the one that the container gets", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		s.create(slice("8Gi", "device", sliced("trainer", "hold 4GiB")))
		p := s.awaitRunning("device")
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", s.processes(p, "trainer")[0]))
		if err != nil {
			t.Fatal(err)
		}
		var given string
		for variable := range strings.SplitSeq(string(environ), "\x00") {
			if value, ok := strings.CutPrefix(variable, "NVIDIA_VISIBLE_DEVICES="); ok {
				given = value
			}
		}
		log := s.log("device", limits.CheckContainer, corev1.PodLogOptions{})
		if want := "memory of " + given + ": 80Gi"; given == "" || !strings.Contains(log, want) {
			t.Errorf("the container was given %q, and the check said\n%s", given, log)
		}
		if want := "devices: 1 visible, 1 planned"; !strings.Contains(log, want) {
			t.Errorf("the check said\n%s", log)
		}
	})
}

func TestHostNetwork(t *testing.T) {
	t.Parallel()
	t.Run("two pods do not clash", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "metrics", fakegpu.Config{Devices: devices})
		for _, name := range []string{"one", "two"} {
			p := slice("8Gi", name, sliced("trainer", "hold 4GiB"))
			p.Spec.HostNetwork = true
			s.create(p)
		}
		s.create(slice("8Gi", "own", sliced("trainer", "hold 4GiB")))
		for _, name := range []string{"one", "two", "own"} {
			p := s.awaitRunning(name)
			if g := status(p, limits.GuardContainer); g.RestartCount > 0 || g.State.Running == nil {
				t.Errorf("the guard of %s: %+v", name, g)
			}
			if log := s.log(name, limits.GuardContainer, corev1.PodLogOptions{}); strings.Contains(log, "metrics are not served") {
				t.Errorf("the guard of %s says\n%s", name, log)
			}
		}
		if text := s.metrics(s.get("own")); !strings.Contains(text, `container="trainer"`) {
			t.Errorf("the metrics are\n%s", text)
		}
	})
}

// metrics is what the guard of a pod serves.
func (s *stage) metrics(p *corev1.Pod) string {
	s.Helper()
	answer, err := http.Get("http://" + p.Status.PodIP + ":9400/metrics")
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

func TestGuardResources(t *testing.T) {
	t.Parallel()
	t.Run("keep to LimitRange and quota, and the pod stays Guaranteed", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		list := func(cpu, memory string) corev1.ResourceList {
			return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
		}
		core := s.node.Client.CoreV1()
		_, err := core.LimitRanges(s.namespace).Create(s.Context(), &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "range"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Min: list("10m", "16Mi"),
				Max: list("1", "1Gi")}}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		hard := list("300m", "300Mi")
		for name, q := range list("300m", "300Mi") {
			hard["limits."+name] = q
		}
		_, err = core.ResourceQuotas(s.namespace).Create(s.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"},
			Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		await(s, "resourcequotas", "", "a quota in force", &corev1.ResourceQuota{},
			func(q *corev1.ResourceQuota) bool { return len(q.Status.Hard) > 0 })
		c := sliced("trainer", "hold 4GiB")
		for name, q := range list("100m", "128Mi") {
			c.Resources.Limits[name] = q
		}
		c.Resources.Requests = c.Resources.Limits.DeepCopy()
		s.create(slice("8Gi", "guaranteed", c))
		if p := s.awaitRunning("guaranteed"); p.Status.QOSClass != corev1.PodQOSGuaranteed {
			t.Errorf("the pod is %s", p.Status.QOSClass)
		}
		quota, err := core.ResourceQuotas(s.namespace).Get(s.Context(), "quota", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		// The guard counts as long as the pod lives, the check no more than what runs after it.
		if used := quota.Status.Used[corev1.ResourceCPU]; used.MilliValue() != 120 {
			t.Errorf("the quota counts %s, want the tenant's 100m and the guard's 20m", used.String())
		}
	})
}
