package explain

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestAtRest(t *testing.T) {
	t.Parallel()
	two, zero := int32(2), int32(0)
	deployment := func(wanted *int32, have, updated int32) *appsv1.Deployment {
		return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: wanted},
			Status: appsv1.DeploymentStatus{Replicas: have, UpdatedReplicas: updated}}
	}
	unseen := deployment(&zero, 0, 0)
	unseen.Generation = 1
	job := func(spec batchv1.JobSpec, active, succeeded int32, conditions ...batchv1.JobCondition) *batchv1.Job {
		return &batchv1.Job{Spec: spec, Status: batchv1.JobStatus{Active: active, Succeeded: succeeded, Conditions: conditions}}
	}
	failed := batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}
	for _, c := range []struct {
		name     string
		workload metav1.Object
		want     bool
	}{
		{"all replicas are there", deployment(&two, 2, 2), true},
		{"one is missing", deployment(&two, 1, 1), false},
		{"an update waits for room", deployment(&two, 2, 0), false},
		{"scaled to none", deployment(&zero, 0, 0), true},
		{"the controller has not seen the change", unseen, false},
		{"one replica by default", deployment(nil, 1, 1), true},
		{"a ReplicaSet that has all", &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: &zero}}, true},
		{"a ReplicaSet that has none", &appsv1.ReplicaSet{}, false},
		{"a StatefulSet that has none", &appsv1.StatefulSet{}, false},
		{"a DaemonSet that lacks one", &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1}}, false},
		{"a Job without its pod", job(batchv1.JobSpec{}, 0, 0), false},
		{"a Job with its pod", job(batchv1.JobSpec{}, 1, 0), true},
		{"a Job with its last pod", job(batchv1.JobSpec{Parallelism: &two, Completions: &two}, 1, 1), true},
		{"a Job that failed", job(batchv1.JobSpec{}, 0, 0, failed), true},
		{"a Job that is suspended", job(batchv1.JobSpec{Suspend: new(true)}, 0, 0), true},
		{"a CronJob", &batchv1.CronJob{}, false},
	} {
		if got := atRest(c.workload); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// TestDenialsOfWorkloadsAtRest: an Event stays for an hour, and the workload may have been scaled since.
func TestDenialsOfWorkloadsAtRest(t *testing.T) {
	t.Parallel()
	denial := recorded("replicaset-controller", "FailedCreate",
		`Error creating: admission webhook "pods.gpuslice.dev" denied the request: exceeded quota`)
	for _, resting := range []bool{true, false} {
		f := &facts{subject: subject{"deployment", "team-a", "web"}, found: true,
			events: []corev1.Event{denial}, atRest: map[types.UID]bool{denial.InvolvedObject.UID: resting}}
		if l := summarize(f); l.denied == resting || (len(l.Reasons) == 0) != resting || len(l.Events) != 1 {
			t.Errorf("at rest %t: denied %t, because %q", resting, l.denied, l.Reasons)
		}
	}
}

func TestMisspeltLabels(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "team-a",
		Labels: map[string]string{"gpuslice.dev/memroy": "4Gi"}}}
	for _, f := range []*facts{
		{subject: subject{"pod", "team-a", "web-1"}, found: true, pod: pod},
		{subject: subject{"deployment", "team-a", "web"}, found: true, pods: []*corev1.Pod{pod, pod}},
	} {
		if l := summarize(f); len(l.Reasons) != 1 || !strings.Contains(l.Reasons[0], "did you mean gpuslice.dev/memory?") || l.denied {
			t.Errorf("%s: because %q", f.Kind, l.Reasons)
		}
	}
}
