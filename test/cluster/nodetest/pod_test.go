package nodetest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPod(t *testing.T) {
	t.Parallel()
	t.Run("runs with logs and exec", func(t *testing.T) {
		t.Parallel()
		n := node(t)
		create(t, n, "plain", corev1.PodSpec{Containers: []corev1.Container{container("main", "echo started; exec sleep 1000")}})
		awaitLog(t, n, "plain", "main", "started")
		out, err := n.Kubectl(t.Context(), "exec", "plain", "--", "/bin/sh", "-c", "echo in $HOSTNAME")
		if err != nil || out != "in plain\n" {
			t.Errorf("exec said %q, %v", out, err)
		}
	})
}

func TestPodNetwork(t *testing.T) {
	t.Parallel()
	t.Run("reaches the API server", func(t *testing.T) {
		t.Parallel()
		n := node(t)
		create(t, n, "account", corev1.PodSpec{Containers: []corev1.Container{
			container("main", "cat /var/run/secrets/kubernetes.io/serviceaccount/namespace; echo; echo $KUBERNETES_SERVICE_HOST; exec sleep 1000")}})
		awaitLog(t, n, "account", "main", "default\n10.96.0.1")
	})
}

// waitFor is a shell loop that finds the process whose arguments end in $1 and puts its number into pid.
const waitFor = `find() { for p in /proc/[0-9]*; do case "$(cat $p/cmdline 2>/dev/null)" in *"$1") pid=${p#/proc/}; return 0;; esac; done; return 1; }
until find 1000; do sleep 0.1; done
`

func TestSharedProcessNamespace(t *testing.T) {
	t.Parallel()
	t.Run("lets a sidecar signal", func(t *testing.T) {
		t.Parallel()
		n := node(t)
		shared, always := true, corev1.ContainerRestartPolicyAlways
		sidecar := container("guard", waitFor+"kill -KILL $pid && echo signalled; exec sleep 2000")
		sidecar.RestartPolicy = &always
		create(t, n, "shared", corev1.PodSpec{
			ShareProcessNamespace: &shared, RestartPolicy: corev1.RestartPolicyNever,
			InitContainers: []corev1.Container{sidecar},
			Containers:     []corev1.Container{container("main", "exec sleep 1000")},
		})
		awaitLog(t, n, "shared", "guard", "signalled")
		awaitPhase(t, n, "shared", corev1.PodFailed)
		state := get(t, n, "shared").Status.ContainerStatuses[0].State
		if state.Terminated == nil || state.Terminated.ExitCode != 137 {
			t.Errorf("main ended as %+v, want exit code 137", state)
		}
	})
}

func TestSidecar(t *testing.T) {
	t.Parallel()
	t.Run("is up before what follows", func(t *testing.T) {
		t.Parallel()
		n := node(t)
		always := corev1.ContainerRestartPolicyAlways
		sidecar := container("guard", "sleep 0.5; echo up > /tmp/up; exec sleep 1000")
		sidecar.RestartPolicy = &always
		sidecar.StartupProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 20, ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"/bin/cat", "/tmp/up"}}}}
		create(t, n, "order", corev1.PodSpec{
			RestartPolicy:  corev1.RestartPolicyNever,
			InitContainers: []corev1.Container{sidecar, container("second", "echo second")},
			Containers:     []corev1.Container{container("main", "echo main")},
		})
		awaitPhase(t, n, "order", corev1.PodSucceeded)
		status := get(t, n, "order").Status
		guard, second, main := status.InitContainerStatuses[0].State.Terminated,
			status.InitContainerStatuses[1].State.Terminated, status.ContainerStatuses[0].State.Terminated
		if guard == nil || second == nil || main == nil {
			t.Fatalf("not all containers have ended: %+v", status)
		}
		if second.StartedAt.Before(&guard.StartedAt) || main.StartedAt.Before(&second.FinishedAt) {
			t.Errorf("started: sidecar %v, second %v (ended %v), main %v", guard.StartedAt, second.StartedAt, second.FinishedAt, main.StartedAt)
		}
		if guard.FinishedAt.Before(&main.FinishedAt) {
			t.Errorf("the sidecar ended at %v, before main at %v", guard.FinishedAt, main.FinishedAt)
		}
	})
}

func TestProbe(t *testing.T) {
	t.Parallel()
	t.Run("one that fails once writes an Event and restarts nothing", func(t *testing.T) {
		t.Parallel()
		n := node(t)
		always := corev1.ContainerRestartPolicyAlways
		sidecar := container("guard", "exec sleep 1000")
		sidecar.RestartPolicy = &always
		sidecar.LivenessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 3, ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c",
				"[ -e /tmp/told ] || { echo > /tmp/told; echo ended python: 9.1Gi of 8Gi; exit 1; }"}}}}
		create(t, n, "told",
			corev1.PodSpec{InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{container("main", "exec sleep 1000")}})
		await(t, "event with what the probe said", func() bool {
			events, err := n.Client.CoreV1().Events("default").List(t.Context(),
				metav1.ListOptions{FieldSelector: "involvedObject.name=told,reason=Unhealthy"})
			return err == nil && len(events.Items) == 1 && strings.Contains(events.Items[0].Message, "ended python: 9.1Gi of 8Gi")
		})
		if restarts := get(t, n, "told").Status.InitContainerStatuses[0].RestartCount; restarts != 0 {
			t.Errorf("the sidecar was restarted %d times", restarts)
		}
	})
}

func TestUserNamespace(t *testing.T) {
	t.Parallel()
	n := node(t)
	host := false
	create(t, n, "mapped", corev1.PodSpec{HostUsers: &host, RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{container("main", "cat /proc/self/uid_map")}})
	awaitPhase(t, n, "mapped", corev1.PodSucceeded)
	out, err := n.Kubectl(t.Context(), "logs", "mapped")
	if fields := strings.Fields(out); err != nil || len(fields) != 3 || fields[0] != "0" || fields[1] == "0" {
		t.Errorf("user map is %q (%v), want root mapped to somebody else", out, err)
	}
}
