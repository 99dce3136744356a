package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/abuse"
)

// unanswered is what the API server says of a pod that waits for a webhook that is down.
const unanswered = "failed calling webhook"

// claimant is a pod with a claim and nothing else of a device.
func claimant(name string, claim corev1.PodResourceClaim) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{claim},
		Containers: []corev1.Container{{Name: "main", Image: "example.test/app:1"}}}}
}

// ofTemplate and ofClaim are claims of a pod's.
func ofTemplate(template string) corev1.PodResourceClaim {
	return corev1.PodResourceClaim{Name: "c", ResourceClaimTemplateName: &template}
}

func ofClaim(claim string) corev1.PodResourceClaim {
	return corev1.PodResourceClaim{Name: "c", ResourceClaimName: &claim}
}

// TestClaimsInOutage creates pods with claims in namespaces that no policy governs, while the webhook is down.
func TestClaimsInOutage(t *testing.T) {
	i := need(t)
	setUpReapply(t, i, "claims-governed")
	for name, fails := range map[string]string{"claims-denied": "", "claims-admitted": api.FailOpenForClaims, "claims-open": api.FailOpen} {
		if err := i.Server.Namespace(t.Context(), name, map[string]string{api.LabelFail: fails}); err != nil {
			t.Fatal(err)
		}
	}
	label(t, i, "claims-governed", api.LabelFail, api.FailOpenForClaims)
	nic := claimant("nic", ofTemplate("nic"))
	plain := claimant("plain", corev1.PodResourceClaim{})
	plain.Spec.ResourceClaims = nil
	beside := gpuPod("beside")
	beside.Spec.ResourceClaims = nic.Spec.ResourceClaims
	err := i.Down(t.Context(), func() {
		for _, namespace := range []string{"claims-admitted", "claims-open", "claims-governed"} {
			wantCreate(t, i, namespace, nic, "")
			wantCreate(t, i, namespace, claimant("nic", ofClaim("nic")), "")
		}
		wantCreate(t, i, "claims-denied", nic, unanswered)
		wantCreate(t, i, "claims-denied", plain, "")
		for _, namespace := range []string{"claims-admitted", "claims-governed", "claims-denied"} {
			wantCreate(t, i, namespace, gpuPod("gpu"), unanswered)
			wantCreate(t, i, namespace, beside, unanswered)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestA33Outage(t *testing.T) {
	t.Run("GPUs by a claim while no webhook answers, beyond a quota", func(t *testing.T) {
		a := claimsOutage(t, "claims: count\nquota: {slices: 1}", "")
		a.made("first", claimedGPU("gpu"))
		a.denied("second", claimedGPU("gpu"), "exceeded quota")
		a.attackInOutage()
	})
}

func TestA33OutageOwnQuota(t *testing.T) {
	t.Run("GPUs by a claim while no webhook answers, beyond the tenant's own quota", func(t *testing.T) {
		claimsOutage(t, "claims: count", "quota: {slices: 1}\n").attackInOutage()
	})
}

func TestA33OutageWarn(t *testing.T) {
	t.Run("GPUs by a claim while no webhook answers, beyond a quota that warns", func(t *testing.T) {
		claimsOutage(t, "enforcementMode: warn\nquota: {slices: 1}", "").attackInOutage()
	})
}

// TestClassesOfManyNamespaces: namespaces are closed at the pace of the API server, so that the last of hundreds is not open for minutes.
func TestClassesOfManyNamespaces(t *testing.T) {
	a := claimsOutage(t, "claims: count", "")
	const many = 200
	named := func(n int) string { return fmt.Sprintf("%s-%d", a.namespace, n) }
	if err := a.i.Policy(t.Context(), "many",
		[]byte("apiVersion: gpuslice.dev/v1\nnamespaces: {selector: {matchLabels: {team: many}}}\n")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.i.RemovePolicy(context.Background(), "many") })
	t.Cleanup(func() { // the server is shared
		for n := range many {
			if _, err := a.i.Server.Client.CoreV1().Namespaces().Patch(context.Background(), named(n), types.MergePatchType,
				[]byte(`{"metadata":{"labels":{"`+api.LabelFail+`":null}}}`), metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	for n := range many {
		if err := a.i.Server.Namespace(t.Context(), named(n),
			map[string]string{api.LabelFail: api.FailOpenForClaims, "team": "many"}); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	for closed := 0; closed < many; {
		_, err := a.i.Server.Client.ResourceV1().ResourceClaims(named(closed)).Create(t.Context(), a.claim("x", "gpu"),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case deniedClaim(err):
			closed++
		case time.Since(begin) > 25*time.Second:
			t.Fatalf("after %s, %d of %d namespaces are closed", time.Since(begin), closed, many)
		default:
			time.Sleep(100 * time.Millisecond)
		}
	}
	t.Logf("%d namespaces are closed after %s", many, time.Since(begin))
}

// claimsOutage is an attacker in a namespace that fails open for claims, once nobody claims GPUs there.
func claimsOutage(t *testing.T, document, own string) *tenant {
	t.Helper()
	a := attacker(t, document, map[string]string{api.LabelFail: api.FailOpenForClaims})
	if own != "" {
		if err := a.i.TenantPolicy(t.Context(), a.i.Server.As(a.namespace), a.namespace,
			[]byte("apiVersion: gpuslice.dev/v1\n"+own)); err != nil {
			t.Fatal(err)
		}
	}
	a.offerDevices(map[string]string{"gpu": "gpu.nvidia.com", "nic": "nic.example.test"})
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := a.client.ResourceV1().ResourceClaimTemplates(a.namespace).Create(ctx, a.template("own", "gpu"),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return deniedClaim(err), nil
	})
	if err != nil {
		t.Fatal("claims of GPUs stay open in a namespace that fails open for claims")
	}
	return a
}

// claim is one of a class that offerDevices makes, and template makes such claims.
func (a *tenant) claim(name, kind string) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: kind + "." + a.namespace}}}}}}
}

func (a *tenant) template(name, kind string) *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: a.claim(name, kind).Spec}}
}

// attackInOutage has the tenant go for GPUs by claims while the webhook is down, and for the label first.
func (a *tenant) attackInOutage() {
	t := a.t
	client, everything := a.client.ResourceV1(), metav1.CreateOptions{}
	denied := func(attack string, err error, by string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), by) {
			t.Errorf("%s: want it denied by %s, got: %v", attack, by, err)
			return
		}
		a.report(attack, abuse.Denied, err.Error())
	}
	_, err := a.client.CoreV1().Namespaces().Patch(t.Context(), a.namespace, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"`+api.LabelFail+`":"open"}}}`), metav1.PatchOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a tenant labels its namespace: %v", err)
	}
	if _, err := client.ResourceClaims(a.namespace).Create(t.Context(), a.claim("x", "nic"), everything); err != nil {
		t.Fatal(err)
	}
	pods := a.client.CoreV1().Pods(a.namespace)
	err = a.i.Down(t.Context(), func() {
		for name, claim := range map[string]corev1.PodResourceClaim{"nic": ofTemplate("nic"), "exchanged": ofClaim("x")} {
			if _, err := pods.Create(t.Context(), claimant(name, claim), everything); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := client.ResourceClaimTemplates(a.namespace).Create(t.Context(), a.template("own", "gpu"), everything)
		denied("a template of GPUs", err, "gpuslice-claims")
		if err := client.ResourceClaims(a.namespace).Delete(t.Context(), "x", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		_, err = client.ResourceClaims(a.namespace).Create(t.Context(), a.claim("x", "gpu"), everything)
		denied("a claim exchanged for one of GPUs", err, "gpuslice-claims")
		for attack, pod := range map[string]*corev1.Pod{
			"a template of slices":         claimant("p", ofTemplate("gpuslice-4396mi")),
			"another pod's slice":          claimant("p", ofClaim("train-gpuslice-x2b7k")),
			"another pod's, its name cut":  claimant("p", ofClaim(strings.Repeat("t", 49)+"-gpusl-x2b7k")),
			"another's extended resource":  claimant("p", ofClaim("train-extended-resources-x2b7k")),
			"a claim by gpuslice's name":   claimant("p", corev1.PodResourceClaim{Name: "gpuslice", ResourceClaimTemplateName: new("nic")}),
			"the slice's label on the pod": labeledPod(claimant("p", ofTemplate("nic")), api.LabelTier),
		} {
			_, err := pods.Create(t.Context(), pod, everything)
			denied(attack, err, unanswered)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func labeledPod(pod *corev1.Pod, key string) *corev1.Pod {
	pod.Labels = map[string]string{key: "guard"}
	return pod
}
