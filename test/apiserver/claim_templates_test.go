package apiserver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// Namespaces of closed: under the policy, and two that it leaves alone.
const (
	governedNamespace = "team"
	ignoredNamespace  = "gpu-operator"
	bypassNamespace   = "bypassed"
)

// closed is a bare server on which nobody but gpuslice claims devices of two classes.
func closed(t *testing.T, o cluster.Options) *bare {
	t.Helper()
	s := without(t, o, "10-namespace.yaml")
	if err := closeClasses(t.Context(), s.apply, "gpu.nvidia.com,memory.example.com"); err != nil {
		t.Fatal(err)
	}
	admins := map[string]string{"resource.kubernetes.io/admin-access": "true"} // elsewhere the API server itself denies adminAccess
	for name, labels := range map[string]map[string]string{governedNamespace: admins,
		ignoredNamespace: admins, bypassNamespace: {api.LabelBypass: "true"}} {
		if err := s.Namespace(t.Context(), name, labels); err != nil {
			t.Fatal(err)
		}
		s.bind(t, name, tenantUser, "cluster-admin")
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return deniedClaim(s.try(ctx, ours(t, "gpuslice-1mi", "mine"), governedNamespace)), nil
	})
	if err != nil {
		t.Fatalf("the policy is not in force: %v", err)
	}
	return s
}

// closeClasses lists classes in the policy as the chart's value does.
func closeClasses(ctx context.Context, apply *install.Applier, classes string) error {
	manifest, err := deploy.Files.ReadFile("58-claims.yaml")
	if err != nil {
		return err
	}
	const open = "''.split(',')"
	if strings.Count(string(manifest), open) != 1 {
		return errors.New("58-claims.yaml does not list classes in one place")
	}
	return apply.Apply(ctx, []byte(strings.Replace(string(manifest), open, "'"+classes+"'.split(',')", 1)))
}

// deniedClaim reports whether the policy denied it.
func deniedClaim(err error) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'gpuslice-claims'")
}

// try has a tenant create a claim or a template, on trial.
func (s *bare) try(ctx context.Context, object runtime.Object, namespace string) error {
	return s.tryAs(ctx, tenantUser, object, namespace)
}

func (s *bare) tryAs(ctx context.Context, user string, object runtime.Object, namespace string) (err error) {
	client, trial := kubernetes.NewForConfigOrDie(s.As(user)).ResourceV1(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	switch o := object.(type) {
	case *resourcev1.ResourceClaimTemplate:
		_, err = client.ResourceClaimTemplates(namespace).Create(ctx, o, trial)
	case *resourcev1.ResourceClaim:
		_, err = client.ResourceClaims(namespace).Create(ctx, o, trial)
	}
	return err
}

// ours is the template that gpuslice writes for a name, under another name.
func ours(t *testing.T, name, as string) *resourcev1.ResourceClaimTemplate {
	t.Helper()
	pod := &corev1.Pod{Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpuslice", ResourceClaimTemplateName: &name}}}}
	all := claims.Named(pod)
	if len(all) != 1 {
		t.Fatalf("%s stands for %d templates", name, len(all))
	}
	all[0].Name = as
	return all[0]
}

// TestClaimTemplates has a tenant write templates and claims while no webhook runs.
func TestClaimTemplates(t *testing.T) {
	s := closed(t, cluster.Options{})
	const small, shared = "gpuslice-4396mi", "device.allowMultipleAllocations"
	names := []string{small, "gpuslice-1mi", "gpuslice-20480mi-of-81920mi", "gpuslice-2x4396mi",
		"gpuslice-4396mi-share", "gpuslice-4396mi-from-memory.example.com",
		"gpuslice-32x4396mi-of-81920mi-share", "gpuslice-99999999mi", "gpuslice-99999744mi", "gpuslice-99614720mi",
		"gpuslice-1048576mi", "gpuslice-4396mi-from-another.example.com",
		"gpuslice-1g.10gb-or-4396mi", "gpuslice-2g.20gb-or-4396mi", "gpuslice-1g.10gb-or-4396mi-share"}
	for _, name := range names {
		if err := s.try(t.Context(), ours(t, name, name), governedNamespace); err != nil {
			t.Errorf("%s as it is: %v", name, err)
		}
		for _, other := range names {
			if name != other && !deniedClaim(s.try(t.Context(), ours(t, name, other), governedNamespace)) {
				t.Errorf("%s passes as %s", name, other)
			}
		}
	}
	exactly := func(edit func(*resourcev1.ExactDeviceRequest)) func(*resourcev1.DeviceClaim) {
		return func(c *resourcev1.DeviceClaim) { edit(c.Requests[0].Exactly) }
	}
	amounts := func(list map[resourcev1.QualifiedName]string) func(*resourcev1.DeviceClaim) {
		return exactly(func(e *resourcev1.ExactDeviceRequest) {
			e.Capacity.Requests = map[resourcev1.QualifiedName]resource.Quantity{}
			for name, text := range list {
				e.Capacity.Requests[name] = resource.MustParse(text)
			}
		})
	}
	selects := func(expressions ...string) func(*resourcev1.DeviceClaim) {
		return exactly(func(e *resourcev1.ExactDeviceRequest) {
			e.Selectors = nil
			for _, text := range expressions {
				e.Selectors = append(e.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: text}})
			}
		})
	}
	const either = "gpuslice-1g.10gb-or-4396mi"
	choice := func(edit func(instance, share *resourcev1.DeviceSubRequest)) func(*resourcev1.DeviceClaim) {
		return func(c *resourcev1.DeviceClaim) {
			edit(&c.Requests[0].FirstAvailable[0], &c.Requests[0].FirstAvailable[1])
		}
	}
	instanceOf := func(text string) func(*resourcev1.DeviceClaim) {
		return choice(func(i, _ *resourcev1.DeviceSubRequest) { i.Selectors[0].CEL.Expression = text })
	}
	uuid, another := resourcev1.FullyQualifiedName("gpu.nvidia.com/uuid"), resourcev1.FullyQualifiedName("gpu.nvidia.com/index")
	for _, c := range []struct {
		name, as string
		edit     func(*resourcev1.DeviceClaim)
	}{
		{"a byte more", small, amounts(map[resourcev1.QualifiedName]string{"memory": "4609540097"})},
		{"all of the memory", small, amounts(map[resourcev1.QualifiedName]string{"memory": "80Gi"})},
		{"no amount", small, exactly(func(e *resourcev1.ExactDeviceRequest) { e.Capacity = nil })},
		{"another capacity as well", small, amounts(map[resourcev1.QualifiedName]string{"memory": "4396Mi", "cores": "100"})},
		{"another capacity alone", small, amounts(map[resourcev1.QualifiedName]string{"shares": "1"})},
		{"two shares", "gpuslice-4396mi-share", amounts(map[resourcev1.QualifiedName]string{"memory": "4396Mi", "shares": "2"})},
		{"all devices", small, exactly(func(e *resourcev1.ExactDeviceRequest) {
			e.AllocationMode, e.Count = resourcev1.DeviceAllocationModeAll, 0
		})},
		{"more devices", small, exactly(func(e *resourcev1.ExactDeviceRequest) { e.Count = 2 })},
		{"devices that may be the same", "gpuslice-2x4396mi", func(c *resourcev1.DeviceClaim) { c.Constraints = nil }},
		{"devices that differ in something else", "gpuslice-2x4396mi",
			func(c *resourcev1.DeviceClaim) { c.Constraints[0].DistinctAttribute = &another }},
		{"devices of the same node", small, func(c *resourcev1.DeviceClaim) {
			c.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &uuid}}
		}},
		{"drained devices", small, exactly(func(e *resourcev1.ExactDeviceRequest) {
			e.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
		})},
		{"a whole device, where none is shared", small, selects()},
		{"a device of one's choice", small, selects("device.driver == 'gpu.nvidia.com'")},
		{"a second choice", small, selects(shared, "true")},
		{"another device than the name says", "gpuslice-20480mi-of-81920mi",
			selects(shared + " && device.capacity[device.driver].memory.asInteger() / 1048576 == 40960")},
		{"any device, though the name says one", "gpuslice-20480mi-of-81920mi", selects(shared)},
		{"more after the choice", "gpuslice-20480mi-of-81920mi",
			selects(shared + " && device.capacity[device.driver].memory.asInteger() / 1048576 == 81920 || true")},
		{"a second request", small, func(c *resourcev1.DeviceClaim) {
			c.Requests = append(c.Requests, resourcev1.DeviceRequest{Name: "second", Exactly: c.Requests[0].Exactly})
		}},
		{"alternatives", small, func(c *resourcev1.DeviceClaim) {
			c.Requests[0] = resourcev1.DeviceRequest{Name: "gpu",
				FirstAvailable: []resourcev1.DeviceSubRequest{{Name: "all", DeviceClassName: "gpu.nvidia.com"}}}
		}},
		{"a larger instance", either, instanceOf("!" + shared + " && device.attributes['gpu.nvidia.com'].profile == '7g.80gb'")},
		{"a share of an instance", either, instanceOf(shared + " && device.attributes['gpu.nvidia.com'].profile == '1g.10gb'")},
		{"any instance", either, instanceOf("!" + shared + " && device.attributes['gpu.nvidia.com'].profile == '1g.10gb' || true")},
		{"any instance at all", either, choice(func(i, _ *resourcev1.DeviceSubRequest) { i.Selectors = nil })},
		{"two instances", either, choice(func(i, _ *resourcev1.DeviceSubRequest) { i.Count = 2 })},
		{"all instances", either, choice(func(i, _ *resourcev1.DeviceSubRequest) {
			i.AllocationMode, i.Count = resourcev1.DeviceAllocationModeAll, 0
		})},
		{"a whole device for an instance", either, choice(func(i, _ *resourcev1.DeviceSubRequest) { i.DeviceClassName = "gpu.nvidia.com" })},
		{"instances by another name", either, choice(func(i, _ *resourcev1.DeviceSubRequest) { i.Name = "instance" })},
		{"drained instances", either, choice(func(i, _ *resourcev1.DeviceSubRequest) {
			i.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
		})},
		{"drained devices behind an instance", either, choice(func(_, s *resourcev1.DeviceSubRequest) {
			s.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
		})},
		{"all behind an instance", either, choice(func(_, s *resourcev1.DeviceSubRequest) { s.Capacity = nil })},
		{"more behind an instance", either, choice(func(_, s *resourcev1.DeviceSubRequest) {
			s.Capacity.Requests["memory"] = resource.MustParse("80Gi")
		})},
		{"any device behind an instance", either, choice(func(_, s *resourcev1.DeviceSubRequest) { s.Selectors = nil })},
		{"another class behind an instance", either,
			choice(func(_, s *resourcev1.DeviceSubRequest) { s.DeviceClassName = "memory.example.com" })},
		{"the share before the instance", either, choice(func(i, s *resourcev1.DeviceSubRequest) { *i, *s = *s, *i })},
		{"an instance alone", either, func(c *resourcev1.DeviceClaim) { c.Requests[0].FirstAvailable = c.Requests[0].FirstAvailable[:1] }},
		{"a third choice", either, func(c *resourcev1.DeviceClaim) {
			c.Requests[0].FirstAvailable = append(c.Requests[0].FirstAvailable,
				resourcev1.DeviceSubRequest{Name: "all", DeviceClassName: "gpu.nvidia.com"})
		}},
		{"a second request beside a choice", either, func(c *resourcev1.DeviceClaim) {
			c.Requests = append(c.Requests,
				resourcev1.DeviceRequest{Name: "second", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com"}})
		}},
		{"another name for the request", small, func(c *resourcev1.DeviceClaim) { c.Requests[0].Name = "x" }},
		{"settings of the driver", small, func(c *resourcev1.DeviceClaim) {
			c.Config = []resourcev1.DeviceClaimConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{
				Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: "gpu.nvidia.com",
					Parameters: runtime.RawExtension{Raw: []byte(`{"sharing":{"strategy":"MPS"}}`)}}}}}
		}},
		{"another class", small, exactly(func(e *resourcev1.ExactDeviceRequest) { e.DeviceClassName = "big.example.com" })},
		{"nothing", small, func(c *resourcev1.DeviceClaim) { c.Requests, c.Constraints = nil, nil }},
		{"a name of the tenant's own", "gpuslice-04396mi", exactly(func(e *resourcev1.ExactDeviceRequest) {})},
	} {
		from := c.as
		if c.as == "gpuslice-04396mi" {
			from = small
		}
		template := ours(t, from, c.as)
		c.edit(&template.Spec.Spec.Devices)
		if err := s.try(t.Context(), template, governedNamespace); !deniedClaim(err) {
			t.Errorf("%s as %s: %v", c.name, c.as, err)
		} else {
			abuse.Report(t, abuse.Attempt{Threat: "A35", Attack: "a template that requests more than its name: " + c.name,
				Outcome: abuse.Denied, Words: err.Error()})
		}
		for _, namespace := range []string{ignoredNamespace, bypassNamespace} {
			if err := s.try(t.Context(), template, namespace); deniedClaim(err) {
				t.Errorf("%s in namespace %s: %v", c.name, namespace, err)
			}
		}
	}
	for name, edit := range map[string]func(*resourcev1.ResourceClaimTemplateSpec){
		"a label for its claims": func(s *resourcev1.ResourceClaimTemplateSpec) { s.Labels = map[string]string{"team": "a"} },
		"a mark of the scheduler's for its claims": func(s *resourcev1.ResourceClaimTemplateSpec) {
			s.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
		},
	} {
		template := ours(t, small, small)
		edit(&template.Spec)
		err := s.try(t.Context(), template, governedNamespace)
		if !deniedClaim(err) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		abuse.Report(t,
			abuse.Attempt{Threat: "A35", Attack: "a template that has more than its name says: " + name, Outcome: abuse.Denied, Words: err.Error()})
	}
	s.testClaims(t)
	s.testScheduler(t)
}

// testScheduler has a second scheduler write claims of extended resources, and a tenant who may do all in a namespace.
func (s *bare) testScheduler(t *testing.T) {
	const user = "system:serviceaccount:kube-system:my-scheduler"
	for _, role := range []string{"system:kube-scheduler", "system:volume-scheduler"} { // as Kubernetes' page on several schedulers has it
		_, err := s.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "my-" + strings.TrimPrefix(role, "system:")},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, class := range []string{"nic.example.com", "gpu.nvidia.com"} {
		claim := &resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "extended", Annotations: map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"},
				OwnerReferences: controlledBy("Pod")},
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
				{Name: "container-0-request-0", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class}}}}}}
		if err := s.try(t.Context(), claim, governedNamespace); !deniedClaim(err) {
			t.Errorf("a tenant writes a claim of class %s as the scheduler does: %v", class, err)
		}
		s.awaitAs(t, user, claim)
		if claim.OwnerReferences = nil; class == "gpu.nvidia.com" && !deniedClaim(s.tryAs(t.Context(), user, claim, governedNamespace)) {
			t.Error("a claim of no pod is admitted because its author may allocate")
		}
	}
}

// awaitAs tries the claim until the API server knows the rights of the user.
func (s *bare) awaitAs(t *testing.T, user string, claim *resourcev1.ResourceClaim) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		last = s.tryAs(ctx, user, claim, governedNamespace)
		return last == nil, nil
	})
	if err != nil {
		t.Errorf("another scheduler writes the claim of a pod: %v", last)
	}
}

// testAdminAccess has the tenant claim to look at devices that are shared out: the denial is of that, and not of a claim to compute with.
func (s *bare) testAdminAccess(t *testing.T, claim *resourcev1.ResourceClaim) {
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: claim.ObjectMeta, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claim.Spec}}
	for _, object := range []runtime.Object{claim, template} {
		err := s.try(t.Context(), object, governedNamespace)
		for _, part := range []string{"adminAccess", "request watch (class gpu.nvidia.com)", ignoredNamespace, api.LabelMemory} {
			if !deniedClaim(err) || !strings.Contains(err.Error(), part) {
				t.Errorf("%T with adminAccess: denied without %q: %v", object, part, err)
			}
		}
		if err := s.try(t.Context(), object, ignoredNamespace); deniedClaim(err) {
			t.Errorf("%T with adminAccess where gpuslice leaves all alone: %v", object, err)
		}
	}
	other := claim.DeepCopy()
	other.Spec.Devices.Requests[0].Exactly.DeviceClassName = "nic.example.com"
	if err := s.try(t.Context(), other, governedNamespace); deniedClaim(err) {
		t.Errorf("adminAccess to devices of another class: %v", err)
	}
}

// testClaims has the tenant write claims, and templates of other classes.
func (s *bare) testClaims(t *testing.T) {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: ours(t, "gpuslice-4396mi", "c").Spec.Spec}
	err := s.try(t.Context(), claim, governedNamespace)
	if !deniedClaim(err) || !strings.Contains(err.Error(), "gpu.nvidia.com") || !strings.Contains(err.Error(), api.LabelMemory) {
		t.Errorf("a claim that pods can share: %v", err)
	}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "watch", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu.nvidia.com", AllocationMode: resourcev1.DeviceAllocationModeAll, AdminAccess: new(true)}}}
	s.testAdminAccess(t, claim)
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "a", FirstAvailable: []resourcev1.DeviceSubRequest{
		{Name: "b", DeviceClassName: "nic.example.com"}, {Name: "c", DeviceClassName: "memory.example.com"}}}}
	if err := s.try(t.Context(), claim, governedNamespace); !deniedClaim(err) || !strings.Contains(err.Error(), "memory.example.com") {
		t.Errorf("a claim with an alternative: %v", err)
	}
	claim.Spec.Devices.Requests[0].FirstAvailable = claim.Spec.Devices.Requests[0].FirstAvailable[:1]
	if err := s.try(t.Context(), claim, governedNamespace); err != nil {
		t.Errorf("a claim of another class: %v", err)
	}
	s.testMadeFor(t, claim)
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "nic"},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claim.Spec}}
	if err := s.try(t.Context(), template, governedNamespace); err != nil {
		t.Errorf("a template of another class: %v", err)
	}
}

// madeFor has a claim look as if Kubernetes had made it for a pod.
const madeFor = "resource.kubernetes.io/pod-claim-name"

func controlledBy(kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{
		{APIVersion: "v1", Kind: kind, Name: "p", UID: "11111111-2222-3333-4444-555555555555", Controller: new(true)},
	}
}

// testMadeFor has the tenant write claims of a class that is not closed as Kubernetes writes those of pods.
func (s *bare) testMadeFor(t *testing.T, claim *resourcev1.ResourceClaim) {
	client := kubernetes.NewForConfigOrDie(s.As(tenantUser)).ResourceV1().ResourceClaims(governedNamespace)
	own, err := client.Create(t.Context(), claim, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		denied bool
		edit   func(*resourcev1.ResourceClaim)
	}{
		{"the annotation", true, func(c *resourcev1.ResourceClaim) { c.Annotations = map[string]string{madeFor: "gpuslice"} }},
		{"a pod's claim", true, func(c *resourcev1.ResourceClaim) {
			c.Annotations, c.OwnerReferences = map[string]string{madeFor: "gpuslice"}, controlledBy("Pod")
		}},
		{"a pod as controller", true, func(c *resourcev1.ResourceClaim) { c.OwnerReferences = controlledBy("Pod") }},
		{"a pod as owner that does not control it", false, func(c *resourcev1.ResourceClaim) {
			c.OwnerReferences = controlledBy("Pod")
			c.OwnerReferences[0].Controller = nil
		}},
		{"another controller", false, func(c *resourcev1.ResourceClaim) { c.OwnerReferences = controlledBy("ConfigMap") }},
		{"a label", false, func(c *resourcev1.ResourceClaim) { c.Labels = map[string]string{"team": "a"} }},
	} {
		created, updated := claim.DeepCopy(), own.DeepCopy()
		created.Name = "made-for"
		c.edit(created)
		c.edit(updated)
		err := s.try(t.Context(), created, governedNamespace)
		if c.denied && (err == nil || !strings.Contains(err.Error(), "From a backup, restore the pod without this claim")) {
			t.Errorf("%s: whoever restores it is not told what to do: %v", c.name, err)
		}
		if deniedClaim(err) != c.denied || !c.denied && err != nil {
			t.Errorf("%s at once: %v", c.name, err)
		}
		if _, err := client.Update(t.Context(), updated,
			metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}); deniedClaim(err) != c.denied || !c.denied && err != nil {
			t.Errorf("%s later: %v", c.name, err)
		}
	}
}

// TestClaimsOfTemplates has Kubernetes make a pod's claim, and one for two pods of a group.
func TestClaimsOfTemplates(t *testing.T) {
	s := closed(t, cluster.Options{ControllerManager: true, Gates: claimsOfGroups, Flags: []string{podGroups()}})
	const name = "gpuslice-4396mi"
	if _, err := s.Client.ResourceV1().ResourceClaimTemplates(governedNamespace).Create(t.Context(),
		ours(t, name, name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{
		Containers:     []corev1.Container{{Name: "main", Image: "example.test/app:1"}},
		ResourceClaims: []corev1.PodResourceClaim{{Name: "gpuslice", ResourceClaimTemplateName: new(name)}}}}
	if _, err := s.Client.CoreV1().Pods(governedNamespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var made resourcev1.ResourceClaim
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		list, err := s.Client.ResourceV1().ResourceClaims(governedNamespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			return false, err
		}
		made = list.Items[0]
		return true, nil
	})
	if err != nil {
		t.Fatalf("the pod has no claim: %v", err)
	}
	s.testMade(t, &made)
	s.testAllocated(t, &made)
	s.testGroup(t, name)
}

// testAllocated has a tenant take the protection off a claim that has a device, and off one that has none.
func (s *bare) testAllocated(t *testing.T, made *resourcev1.ResourceClaim) {
	tenant := kubernetes.NewForConfigOrDie(s.As(tenantUser)).ResourceV1().ResourceClaims(governedNamespace)
	kubernetesOwn := s.Client.ResourceV1().ResourceClaims(governedNamespace)
	trial := []string{metav1.DryRunAll}
	made.Finalizers = []string{resourcev1.Finalizer, "example.test/mine"}
	made, err := kubernetesOwn.Update(t.Context(), made, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	strips := map[string]func(*resourcev1.ResourceClaim){
		"none left":       func(c *resourcev1.ResourceClaim) { c.Finalizers = nil },
		"one left":        func(c *resourcev1.ResourceClaim) { c.Finalizers = c.Finalizers[1:] },
		"another instead": func(c *resourcev1.ResourceClaim) { c.Finalizers[0] = resourcev1.Finalizer + "ed" },
	}
	for _, allocated := range []bool{false, true} {
		if allocated {
			made.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.nvidia.com", Pool: "node", Device: "gpu-0"}}}}
			if made, err = kubernetesOwn.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for name, strip := range strips {
			stripped := made.DeepCopy()
			strip(stripped)
			_, err := tenant.Update(t.Context(), stripped, metav1.UpdateOptions{DryRun: trial})
			if deniedClaim(err) != allocated || !allocated && err != nil {
				t.Errorf("finalizers: %s, allocated: %t: %v", name, allocated, err)
			}
			if allocated {
				abuse.Report(t,
					abuse.Attempt{Threat: "A35", Attack: "the finalizer of a claim in use taken off: " + name, Outcome: abuse.Denied, Words: err.Error()})
			}
			if _, err := kubernetesOwn.Update(t.Context(), stripped, metav1.UpdateOptions{DryRun: trial}); err != nil {
				t.Errorf("whoever may allocate is denied: %s: %v", name, err)
			}
		}
	}
	moved := made.DeepCopy()
	moved.Labels, moved.Finalizers = map[string]string{"team": "a"}, []string{"example.test/mine", resourcev1.Finalizer}
	if _, err := tenant.Update(t.Context(), moved, metav1.UpdateOptions{DryRun: trial}); err != nil {
		t.Errorf("finalizers in another order: %v", err)
	}
}

// testMade has a tenant edit the claim that Kubernetes made for a pod.
func (s *bare) testMade(t *testing.T, made *resourcev1.ResourceClaim) {
	if made.Annotations[madeFor] != "gpuslice" || metav1.GetControllerOf(made) == nil {
		t.Fatalf("Kubernetes marks the claims of pods otherwise: %+v", made.ObjectMeta)
	}
	client := kubernetes.NewForConfigOrDie(s.As(tenantUser)).ResourceV1().ResourceClaims(governedNamespace)
	for name, c := range map[string]struct {
		patch  string
		denied bool
	}{
		"a label":                  {`{"metadata": {"labels": {"team": "a"}}}`, false},
		"another annotation":       {`{"metadata": {"annotations": {"team": "a"}}}`, false},
		"another claim of the pod": {`{"metadata": {"annotations": {"` + madeFor + `": "other"}}}`, true},
		"no claim of the pod":      {`{"metadata": {"annotations": {"` + madeFor + `": null}}}`, true},
		"no owner":                 {`{"metadata": {"ownerReferences": null}}`, true},
		"another pod":              {`{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "11111111-2222-3333-4444-555555555555", "controller": true}]}}`, true},
	} {
		_, err := client.Patch(t.Context(), made.Name, types.MergePatchType, []byte(c.patch),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if deniedClaim(err) != c.denied || !c.denied && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
