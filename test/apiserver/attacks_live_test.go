package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
)

func TestA10(t *testing.T) {
	t.Run("guard image and annotations of a live pod", func(t *testing.T) {
		a := attacker(t, "", nil)
		before := a.made("train", slice("", "", ""))
		pods := a.client.CoreV1().Pods(a.namespace)
		for what, patch := range map[string]string{
			"the guard's image": `{"spec":{"initContainers":[{"name":"` + limits.GuardContainer + `","image":"evil"}]}}`,
			"the promise":       `{"metadata":{"annotations":{"` + api.AnnotationPromise + `":"{}","` + api.AnnotationObserved + `":"x"}}}`,
		} {
			after, err := pods.Patch(t.Context(), "train", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
			if err != nil {
				continue // denied is as good
			}
			if got := imageOf(after, limits.GuardContainer); got == "" || got != imageOf(before, limits.GuardContainer) {
				t.Errorf("%s: the guard's image is %q", what, got)
			}
			if after.Annotations[api.AnnotationPromise] != before.Annotations[api.AnnotationPromise] ||
				after.Annotations[api.AnnotationObserved] == "x" {
				t.Errorf("%s: the annotations are %v", what, after.Annotations)
			}
			a.contained("change "+what+" of a live pod", "restored")
		}
		_, err := pods.Patch(t.Context(), "train", types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"gpuslice.dev/memory":"20Gi"}}}`), metav1.PatchOptions{})
		deniedByUs(t, "a label of ours", err, "delete the pod and create it again")
		a.reportDenial("change a label of a live pod", err)
	})
}

func imageOf(pod *corev1.Pod, container string) string {
	for _, c := range pod.Spec.InitContainers {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}

func TestA11(t *testing.T) {
	t.Run("ephemeral container", func(t *testing.T) {
		a := attacker(t, "", nil)
		a.made("train", slice("", "", ""))
		plain := `{"spec":{"ephemeralContainers":[{"name":"debugger","image":"busybox","targetContainerName":"a","env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}]}]}}`
		add := func(pods corev1client.PodInterface, text string) (*corev1.Pod, error) {
			return pods.Patch(t.Context(), "train", types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{}, "ephemeralcontainers")
		}
		if _, err := add(a.client.CoreV1().Pods(a.namespace), plain); !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "gpuslice") {
			t.Errorf("who may edit may debug: %v", err)
		}
		operator := a.i.Server.Client.CoreV1().Pods(a.namespace)
		for words, more := range map[string]string{
			"is privileged": `"securityContext":{"privileged":true}`,
			"SYS_PTRACE":    `"securityContext":{"capabilities":{"add":["SYS_PTRACE"]}}`,
		} {
			_, err := add(operator, strings.Replace(plain, `"image"`, more+`,"image"`, 1))
			deniedByUs(t, words, err, words)
			a.reportDenial("ephemeral container: "+words, err)
		}
		pod, err := add(operator, plain)
		if err != nil {
			t.Fatal(err)
		}
		if env := pod.Spec.EphemeralContainers[0].Env; len(env) != 1 || env[0].Value != "void" {
			t.Errorf("its variables are %v", env)
		}
		a.contained("ephemeral container with visible devices", "NVIDIA_VISIBLE_DEVICES=void")
		second := strings.Replace(strings.Replace(plain, "debugger", "second", 1),
			`,"env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}]`, "", 1)
		if pod, err = add(operator, second); err != nil || len(pod.Spec.EphemeralContainers) != 2 {
			t.Errorf("a second one, beside the first: %v", err)
		}
	})
}

// TestA11Plain debugs a pod without a GPU.
func TestA11Plain(t *testing.T) {
	t.Run("ephemeral container of a pod without a GPU", func(t *testing.T) {
		a := attacker(t, "", nil)
		a.made("plain", "spec:\n  volumes: [{name: v, emptyDir: {}}]\n  containers:\n  - {name: a, image: busybox}\n")
		pods := a.i.Server.Client.CoreV1().Pods(a.namespace)
		add := func(name, more string) (*corev1.Pod, error) {
			text := `{"spec":{"ephemeralContainers":[{"name":"` + name + `","image":"busybox",` + more + `}]}}`
			return pods.Patch(t.Context(), "plain", types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{}, "ephemeralcontainers")
		}
		_, err := add("mount", `"volumeMounts":[{"name":"v","mountPath":"/var/run/nvidia-container-devices/all"}]`)
		deniedByUs(t, "mount", err, "which takes devices")
		a.reportDenial("ephemeral container: a mount that names devices", err)
		pod, err := add("from", `"envFrom":[{"configMapRef":{"name":"gpus","optional":true}}]`)
		if err != nil {
			t.Fatal(err)
		}
		if env := pod.Spec.EphemeralContainers[0].Env; len(env) != 1 || env[0].Value != "void" {
			t.Errorf("its variables are %v", env)
		}
		a.contained("ephemeral container with envFrom", "NVIDIA_VISIBLE_DEVICES=void")
		if _, err = add("other", `"volumeMounts":[{"name":"v","mountPath":"/data"}]`); err != nil {
			t.Errorf("a container that takes nothing: %v", err)
		}
	})
}

func TestResize(t *testing.T) {
	t.Run("the guard of a live pod is not resized", func(t *testing.T) {
		a := attacker(t, "", nil)
		a.made("train", slice("", "", "    # cpu and memory can be resized\n"))
		pods := a.i.Server.Client.CoreV1().Pods(a.namespace)
		resize := func(list, container string) error {
			text := fmt.Sprintf(`{"spec":{%q:[{"name":%q,"resources":{"limits":{"memory":"16Mi"},"requests":{"memory":"16Mi"}}}]}}`, list, container)
			_, err := pods.Patch(t.Context(), "train", types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{}, "resize")
			return err
		}
		deniedByUs(t, "the guard", resize("initContainers", limits.GuardContainer), "belongs to gpuslice; leave it out")
		if err := resize("containers", "a"); err != nil && strings.Contains(err.Error(), "gpuslice") {
			t.Errorf("the author's own container: %v", err)
		}
	})
}

func TestA14(t *testing.T) {
	t.Run("node name set by hand", func(t *testing.T) {
		a := attacker(t, "", nil)
		a.denied("placed", slice("  nodeName: l4-1\n", "", ""), "nodeName in a slice")
	})
}

func TestA15(t *testing.T) {
	t.Run("scheduler of the author's own", func(t *testing.T) {
		a := attacker(t, "quota: {memory: 4Gi}", nil)
		if pod := a.made("one", slice("  schedulerName: mine\n", "", "")); !sliced(pod) {
			t.Error("the pod has no slice")
		}
		a.denied("two", slice("  schedulerName: mine\n", "", ""), "exceeded quota")
	})
}

func TestA17(t *testing.T) {
	t.Run("quantities that count as nothing", func(t *testing.T) {
		a := attacker(t, "mode: transparent\ndefaultSlice: {memory: 4Gi}", nil)
		for n, quantity := range []string{"1e19", "1e64", "1e400", "1e100000", "1e10000000", "9223372036854775807", "9223372036854775808",
			"18446744073709551616", "36893488147419103232", "0.1n", "-1", "1Ki", "1e-400"} {
			manifest := "spec:\n  containers:\n  - {name: a, image: x, resources: {limits: {nvidia.com/gpu: '" + quantity + "'}}}\n"
			if pod, err := a.create(fmt.Sprintf("q%d", n), manifest); err == nil {
				q := pod.Spec.Containers[0].Resources.Limits["nvidia.com/gpu.shared"]
				t.Errorf("%s is stored as %s", quantity, q.String())
			} else {
				a.reportDenial("quantity "+quantity, err)
			}
		}
	})
}

func TestA18(t *testing.T) {
	t.Run("look-alikes", func(t *testing.T) {
		a := attacker(t, "mode: transparent\ndefaultSlice: {memory: 4Gi}", nil)
		plain := slice("", "", "")
		for what, manifest := range map[string]string{
			"digits of another script": strings.Replace(plain, "  labels: {gpuslice.dev/memory: 4Gi}\n",
				"  annotations: {gpuslice.dev/containers: '{\"a\": {\"memory\": \"４Gi\"}}'}\n", 1),
			"a container's name in Greek": strings.Replace(plain, "  labels: {gpuslice.dev/memory: 4Gi}\n",
				"  annotations: {gpuslice.dev/containers: '{\"α\": {\"memory\": \"4Gi\"}}'}\n", 1),
			"a word in another case": strings.Replace(plain, "gpuslice.dev/memory: 4Gi", "gpuslice.dev/share: Disabled", 1),
			"a unit in another case": strings.Replace(plain, "4Gi", "4gi", 1),
		} {
			_, err := a.create("like", manifest)
			deniedByUs(t, what, err, "")
			a.reportDenial(what, err)
		}
		pod := a.made("other-resource", "spec:\n  containers:\n  - {name: a, image: x, resources: {limits: {nvidia.com/GPU: 1}}}\n")
		if n := len(pod.Spec.Containers[0].Resources.Limits); n != 1 || sliced(pod) {
			t.Errorf("nvidia.com/GPU is read as a GPU: %v", pod.Spec.Containers[0].Resources.Limits)
		}
	})
}

func TestA19(t *testing.T) {
	t.Run("namespace with an exempting label", func(t *testing.T) {
		labels := map[string]string{"gpuslice.dev/ignore": "true", "gpuslice.dev/webhook": "disabled",
			"admission.gatekeeper.sh/ignore": "x", "control-plane": "x"}
		a := attacker(t, "", labels)
		if pod := a.made("train", slice("", "", "")); !sliced(pod) {
			t.Error("a label of the namespace keeps the webhook away")
		}
		a.contained("exempting labels on the namespace", "the pod has a slice")
	})
}

func TestA26(t *testing.T) {
	t.Run("forged records of a pod without a slice", func(t *testing.T) {
		a := attacker(t, "", nil)
		forged := `gpuslice.dev/observed: '{"state":"holds","tier":"hardware"}', gpuslice.dev/planned: '{"tier":"hardware"}'`
		pod := a.made("forged", "metadata:\n  annotations: {"+forged+
			"}\nspec:\n  containers:\n  - {name: a, image: 'busybox:1', resources: {limits: {nvidia.com/gpu.shared: 1}}}\n")
		change := []byte(`{"metadata":{"annotations":{"gpuslice.dev/observed":"{}","gpuslice.dev/planned":"{}"}}}`)
		live, err := a.client.CoreV1().Pods(a.namespace).Patch(t.Context(), "forged", types.MergePatchType, change, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for when, annotations := range map[string]map[string]string{"at creation": pod.Annotations, "on the live pod": live.Annotations} {
			if len(annotations) > 0 {
				t.Errorf("%s: %v", when, annotations)
			}
		}
		a.contained("what is planned and observed, written by a tenant", "the annotations are removed")
	})
}

// withoutMutation keeps the mutating webhook from being called for the tenant's namespace.
func (a *tenant) withoutMutation() {
	a.t.Helper()
	client := a.i.Server.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	leave := func(ctx context.Context, out bool) {
		live, err := client.Get(ctx, "gpuslice", metav1.GetOptions{})
		if err != nil {
			a.t.Fatal(err)
		}
		selector := live.Webhooks[0].NamespaceSelector
		selector.MatchExpressions = slices.DeleteFunc(selector.MatchExpressions,
			func(r metav1.LabelSelectorRequirement) bool { return slices.Equal(r.Values, []string{a.namespace}) })
		if out {
			selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{a.namespace}})
		}
		if _, err := client.Update(ctx, live, metav1.UpdateOptions{}); err != nil {
			a.t.Fatal(err)
		}
	}
	leave(a.t.Context(), true)
	a.t.Cleanup(func() { leave(context.Background(), false) })
	const asking = "a slice that is asked for in vain"
	a.awaitDenied(strings.ReplaceAll(asking, " ", "-"), slice("", "", ""), "was not given one")
}

func TestA26Unmutated(t *testing.T) {
	t.Run("forged records, while the mutating webhook is not called", func(t *testing.T) {
		a := attacker(t, "", nil)
		a.withoutMutation()
		for name, annotation := range map[string]string{"observed": `gpuslice.dev/observed: '{"tier":"hardware"}'`,
			"planned": `gpuslice.dev/planned: '{"tier":"hardware"}'`} {
			for kind, resources := range map[string]string{"shared": "{limits: {nvidia.com/gpu.shared: 1}}", "none": "{}"} {
				a.denied(name+"-"+kind,
					"metadata:\n  annotations: {"+annotation+"}\nspec:\n  containers:\n  - {name: a, image: 'busybox:1', resources: "+resources+"}\n",
					"annotations reserved for gpuslice")
			}
		}
	})
}

func TestA21(t *testing.T) {
	t.Run("policy in the tenant's namespace", func(t *testing.T) {
		a := attacker(t, "limits: {perContainer: {memory: 5Gi}}", nil)
		large := strings.Replace(slice("", "", ""), "4Gi", "5200Mi", 1)
		for _, name := range []string{"gpuslice-policy", "mine", a.namespace} {
			document := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.LabelPolicy: "true"}},
				Data: map[string]string{api.PolicyKey: "apiVersion: gpuslice.dev/v1\nlimits: {perContainer: {memory: 20Gi}}\n"}}
			if _, err := a.client.CoreV1().ConfigMaps(a.namespace).Create(t.Context(), document, metav1.CreateOptions{}); err != nil {
				continue // denied is as good
			}
			a.denied("large", large, "policy gpuslice-system/"+a.namespace+" allows 5Gi")
		}
		a.made("small", slice("", "", ""))
	})
}

func TestA30(t *testing.T) {
	t.Run("status and finalizers free no quota", func(t *testing.T) {
		a := attacker(t, "quota: {memory: 4Gi}", nil)
		a.made("held", slice("", "  finalizers: [example.test/hold]\n", ""))
		pods := a.client.CoreV1().Pods(a.namespace)
		_, err := pods.Patch(t.Context(), "held", types.MergePatchType,
			[]byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
		if !apierrors.IsForbidden(err) {
			t.Errorf("who may edit may write a pod's status: %v", err)
		}
		if err := pods.Delete(t.Context(), "held", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		a.denied("next", slice("", "", ""), "exceeded quota")
		if _, err := pods.Patch(t.Context(), "held", types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Errorf("its finalizer cannot go: %v", err)
		}
	})
}

func TestA32(t *testing.T) {
	t.Run("shares under the name of whole devices, without a label", func(t *testing.T) {
		a := attacker(t, "quota: {slices: 2}", nil)
		a.moveTo(nodesOf(t, "a10-timeslicing")...)
		const share = "spec:\n  containers:\n  - {name: a, image: x, resources: {limits: {nvidia.com/gpu: 1}}}\n"
		a.made("one", share)
		a.made("two", share)
		a.denied("three", share, "exceeded quota")
	})
}

// claimedGPU claims a device of a class by its template.
func claimedGPU(template string) string {
	return "spec:\n  resourceClaims: [{name: c, resourceClaimTemplateName: " + template +
		"}]\n  containers:\n  - {name: a, image: x, resources: {claims: [{name: c}]}}\n"
}

// offerDevices makes a device class for each driver, and in the tenant's namespace a claim template of it.
func (a *tenant) offerDevices(drivers map[string]string) {
	a.t.Helper()
	// as in a namespace that had claims before
	client := kubernetes.NewForConfigOrDie(a.i.Server.As("system:kube-controller-manager", "system:masters")).ResourceV1()
	for name, driver := range drivers {
		class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name + "." + a.namespace}, Spec: resourcev1.DeviceClassSpec{
			ExtendedResourceName: new("example.test/" + name + "-" + a.namespace),
			Selectors: []resourcev1.DeviceSelector{
				{CEL: &resourcev1.CELDeviceSelector{Expression: "device.driver == '" + driver + "'"}},
			}}}
		if _, err := client.DeviceClasses().Create(a.t.Context(), class, metav1.CreateOptions{}); err != nil {
			a.t.Fatal(err)
		}
		a.t.Cleanup(func() { _ = client.DeviceClasses().Delete(context.Background(), class.Name, metav1.DeleteOptions{}) })
		request := resourcev1.DeviceRequest{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class.Name}}
		template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimTemplateSpec{
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{request}}}}}
		if _, err := client.ResourceClaimTemplates(a.namespace).Create(a.t.Context(), template, metav1.CreateOptions{}); err != nil {
			a.t.Fatal(err)
		}
	}
}

// awaitMade creates a pod that is let in once gpuslice knows its device class.
func (a *tenant) awaitMade(name, manifest string) {
	a.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(a.t.Context(), 50*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		_, last = a.create(name, manifest)
		return last == nil, nil
	})
	if err != nil {
		a.t.Errorf("%s: %v", name, last)
	}
}

// awaitDenied creates and deletes a pod until gpuslice, which knows its device class by then, denies it.
func (a *tenant) awaitDenied(name, manifest, words string) {
	a.t.Helper()
	err := wait.PollUntilContextTimeout(a.t.Context(), 100*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := a.create(name, manifest)
		if err != nil {
			return true, nil
		}
		return false, a.client.CoreV1().Pods(a.namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	})
	if err != nil {
		a.t.Errorf("%s is let in: %v", name, err)
	}
	a.denied(name, manifest, words)
}

func TestA33(t *testing.T) {
	t.Run("GPUs by a claim", func(t *testing.T) {
		a := attacker(t, "claims: count\nquota: {slices: 1}", nil)
		a.offerDevices(map[string]string{"gpu": "gpu.nvidia.com", "nic": "nic.example.test"})
		a.made("first", claimedGPU("gpu"))
		a.denied("by-template", claimedGPU("gpu"), "exceeded quota")
		a.denied("by-name", "spec:\n  containers:\n  - {name: a, image: x, resources: {limits: {deviceclass.resource.kubernetes.io/gpu."+
			a.namespace+": 1}}}\n", "exceeded quota")
		a.denied("beside-it", slice("", "", ""), "exceeded quota")
		a.denied("unknown", claimedGPU("later"), "exceeded quota")
		a.awaitMade("other-device", claimedGPU("nic"))
	})
}

func TestA33Group(t *testing.T) {
	t.Run("GPUs by a claim that a PodGroup keeps", func(t *testing.T) {
		a := attacker(t, "claims: count\nquota: {slices: 4}", nil)
		a.offerDevices(map[string]string{"gpu": "gpu.nvidia.com", "nic": "nic.example.test"})
		const group = "spec:\n  schedulingGroup: {podGroupName: trainers}\n"
		grouped := func(template string) string { return strings.Replace(claimedGPU(template), "spec:\n", group, 1) }
		a.made("without-a-group", claimedGPU("gpu"))
		a.denied("in-a-group", grouped("gpu"), "remove spec.schedulingGroup, or the claim")
		a.awaitMade("other-device", grouped("nic"))
	})
}

func TestA33Deny(t *testing.T) {
	t.Run("GPUs by a claim, where policy denies them", func(t *testing.T) {
		a := attacker(t, "claims: deny", nil)
		a.offerDevices(map[string]string{"gpu": "gpu.nvidia.com", "nic": "nic.example.test"})
		a.denied("by-template", claimedGPU("gpu"), "GPUs by a claim")
		a.denied("by-name",
			"spec:\n  containers:\n  - {name: a, image: x, resources: {limits: {deviceclass.resource.kubernetes.io/gpu.nvidia.com: 1}}}\n",
			"GPUs by a claim")
		a.denied("in-a-slice", slice("  resourceClaims: [{name: c, resourceClaimTemplateName: gpu}]\n", "", ""), "GPUs by a claim")
		a.awaitMade("other-device", claimedGPU("nic"))
	})
}

// TestA33Exchanged: names of claims can be given again, while pods wait.
func TestA33Exchanged(t *testing.T) {
	t.Run("a claim exchanged after its pod was admitted", func(t *testing.T) {
		a := attacker(t, "quota: {memory: 16Gi}", nil)
		a.offerDevices(map[string]string{"gpu": "gpu.nvidia.com", "nic": "nic.example.test"})
		claims := a.client.ResourceV1().ResourceClaims(a.namespace)
		all := func(kind string) *resourcev1.ResourceClaim {
			return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "x"},
				Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
					{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: kind + "." + a.namespace,
						AllocationMode: resourcev1.DeviceAllocationModeAll}}}}}}
		}
		const naming = "spec:\n  schedulingGates: [{name: example.test/wait}]\n  resourceClaims: [{name: c, resourceClaimName: x}]\n  containers:\n  - {name: a, image: x, resources: {claims: [{name: c}]}}\n"
		a.denied("before-its-claim", naming, "create that first")
		if _, err := claims.Create(t.Context(), all("nic"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		a.awaitMade("gated", naming)
		if err := claims.Delete(t.Context(), "x", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		var err error
		_ = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
			_, err = claims.Create(ctx, all("gpu"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return deniedClaim(err), nil
		}) // what is admitted is reported here
		for _, part := range []string{"gpu." + a.namespace, "in namespace " + a.namespace, api.LabelMemory} {
			if !deniedClaim(err) || !strings.Contains(err.Error(), part) {
				t.Fatalf("denied without %q: %v", part, err)
			}
		}
		a.reportDenial("a claim of all GPUs of a node under the name of one of a network device", err)
		if _, err := claims.Create(t.Context(), all("nic"), metav1.CreateOptions{}); err != nil {
			t.Errorf("a claim of another device: %v", err)
		}
	})
}

// byName asks for devices by the name that offerDevices gives their class.
func (a *tenant) byName(kind string, n int, more string) string {
	return fmt.Sprintf("spec:\n  containers:\n  - {name: a, image: x, resources: {limits: {example.test/%s-%s: %d%s}}}\n",
		kind, a.namespace, n, more)
}

func TestA33Name(t *testing.T) {
	t.Run("GPUs by the name of their device class", func(t *testing.T) {
		if err := need(t).Forget(t.Context()); err != nil { // pools of other tests that offer shares as nvidia.com/gpu, which would count
			t.Fatal(err)
		}
		a := attacker(t, "claims: count\nquota: {slices: 2}", nil)
		a.offerDevices(map[string]string{"gpu": "gpu.nvidia.com", "nic": "nic.example.test"})
		a.awaitDenied("three", a.byName("gpu", 3, ""), "exceeded quota")
		a.made("other-device", a.byName("nic", 9, ""))
		a.made("beside-a-gpu", a.byName("gpu", 1, ", nvidia.com/gpu: 1"))
		a.made("second", a.byName("gpu", 1, ""))
		a.denied("one-more", a.byName("gpu", 1, ""), "exceeded quota")
	})
}

func TestA33NameDeny(t *testing.T) {
	t.Run("GPUs by the name of their device class, where policy denies claims", func(t *testing.T) {
		a := attacker(t, "claims: deny", nil)
		a.offerDevices(map[string]string{"gpu": "gpu.nvidia.com", "nic": "nic.example.test"})
		a.awaitDenied("by-name", a.byName("gpu", 1, ""), "GPUs by a claim")
		a.made("other-device", a.byName("nic", 1, ""))
	})
}

func TestA34(t *testing.T) {
	t.Run("another image for a pending pod", func(t *testing.T) {
		a := attacker(t, "guard: {enabled: false}\nminimumEnforcement: framework\nframeworks: {vllm: {arguments: deny}}", nil)
		gated := strings.Replace(slice("  schedulingGates: [{name: example.test/wait}]\n", "", ""), "registry.example.com/team/train:7",
			"pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime", 1)
		a.made("train", gated)
		to := func(image string) error {
			_, err := a.client.CoreV1().Pods(a.namespace).Patch(t.Context(), "train", types.StrategicMergePatchType,
				[]byte(`{"spec":{"containers":[{"name":"a","image":"`+image+`"}]}}`), metav1.PatchOptions{})
			return err
		}
		for image, words := range map[string]string{"vllm/vllm-openai:v0.6.0": "framework argument",
			"example.test/app:1": "below the minimum enforcement"} {
			err := to(image)
			deniedByUs(t, image, err, words)
			a.reportDenial("image "+image, err)
		}
		if err := to("pytorch/pytorch:2.11.0-cuda12.8-cudnn9-runtime"); err != nil {
			t.Errorf("another version that keeps the cap: %v", err)
		}
		after, err := a.i.Server.Client.CoreV1().Pods(a.namespace).Get(t.Context(), "train", metav1.GetOptions{})
		if err != nil || !strings.Contains(after.Annotations[api.AnnotationPlanned], "pytorch 2.11.0") {
			t.Errorf("planned does not name the new image's framework: %v %s", err, after.Annotations[api.AnnotationPlanned])
		}
	})
}
