package doctor

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/scenarios"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// at is when the tests look.
var at = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// change is one thing that is so in a cluster.
type change func(*testing.T, *Facts)

// facts are those of a cluster of Kubernetes 1.37 without anything in it, and changes.
func facts(t *testing.T, changes ...change) *Facts {
	t.Helper()
	f := &Facts{System: api.SystemNamespace, Now: at, Version: &version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2"}}
	for _, c := range changes {
		c(t, f)
	}
	return f
}

func nodes(names ...string) change {
	return func(t *testing.T, f *Facts) {
		all, err := scenarios.Nodes(names...)
		if err != nil {
			t.Fatal(err)
		}
		f.Nodes = append(f.Nodes, all...)
	}
}

func label(key, value string) change {
	return func(_ *testing.T, f *Facts) {
		for _, n := range f.Nodes {
			n.Labels[key] = value
		}
	}
}

// overlay is a NodeOverlay that adds a resource.
func overlay(name string) change {
	return func(t *testing.T, f *Facts) {
		if err := f.addOverlay([]byte(`{"kind":"NodeOverlay","spec":{"capacity":{"` + name + `":"4"}}}`)); err != nil {
			t.Fatal(err)
		}
	}
}

func minorVersion(minor string) change {
	return func(_ *testing.T, f *Facts) {
		f.Version = &version.Info{Major: "1", Minor: minor, GitVersion: "v1." + minor + ".0"}
	}
}

func group(name string) change {
	return func(_ *testing.T, f *Facts) { f.Groups = append(f.Groups, name) }
}

// software is a DaemonSet of NVIDIA's, ready on ready of two nodes.
func software(container string, ready int32, env ...corev1.EnvVar) change {
	return func(_ *testing.T, f *Facts) {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "nvidia", Name: container}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: container, Image: "nvcr.io/nvidia/" + container + ":v1", Env: env}}
		d.Status.DesiredNumberScheduled, d.Status.NumberReady = 2, ready
		f.DaemonSets = append(f.DaemonSets, d)
	}
}

func withConfig(text string) change {
	return func(_ *testing.T, f *Facts) {
		f.Configs = append(f.Configs, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "nvidia", Name: "config"},
			Data: map[string]string{"any": text, "README": "not: [a config"}})
	}
}

// namespace is one with a policy of its own, and labels of Pod Security.
func namespace(name, security, document string) change {
	return func(_ *testing.T, f *Facts) {
		f.Namespaces = append(f.Namespaces,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": security}}})
		f.Policies = append(f.Policies, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.System, Name: name, Labels: map[string]string{api.LabelPolicy: "true"}},
			Data:       map[string]string{api.PolicyKey: "apiVersion: gpuslice.dev/v1\nnamespaces: {names: [" + name + "]}\n" + document},
		})
	}
}

// defaultPolicy is the cluster's, where alone pools may be declared.
func defaultPolicy(document string) change {
	return func(_ *testing.T, f *Facts) {
		f.Policies = append(f.Policies, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.System, Name: "default", Labels: map[string]string{api.LabelPolicy: "true"}},
			Data:       map[string]string{api.PolicyKey: "apiVersion: gpuslice.dev/v1\nmode: off\n" + document},
		})
	}
}

func quota(namespace string, hard ...string) change {
	return func(_ *testing.T, f *Facts) {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gpus"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}}}
		for _, name := range hard {
			q.Spec.Hard[corev1.ResourceName(name)] = resource.MustParse("4")
		}
		f.Quotas = append(f.Quotas, q)
	}
}

func mutator(name string, resources ...string) change {
	return func(_ *testing.T, f *Facts) {
		f.Mutating = append(f.Mutating, &admissionv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Webhooks: []admissionv1.MutatingWebhook{{Name: name, Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{APIGroups: []string{""}, Resources: resources},
			}}}},
		})
	}
}

// exceptLabeled has the last webhook leave out namespaces with a label.
func exceptLabeled(key, value string) change {
	return func(_ *testing.T, f *Facts) {
		f.Mutating[len(f.Mutating)-1].Webhooks[0].NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{value}}}}
	}
}

// TestSharersRemedy: the label by which a system leaves a namespace alone stands in its own selector.
func TestSharersRemedy(t *testing.T) {
	t.Parallel()
	for want, changes := range map[string][]change{
		"exclude it there by kubectl label namespace NAMESPACE hami.io/webhook=ignore,": {exceptLabeled("hami.io/webhook", "ignore")},
		"exclude it there by its namespaceSelector,":                                    nil,
	} {
		f := facts(t, append([]change{mutator("hami-webhook", "pods"), namespace("team-a", "", "")}, changes...)...)
		all := checkMutators(f)
		if len(all) != 1 || !strings.Contains(all[0].Remedy, want) || !strings.Contains(all[0].Evidence[0].Value, "in team-a") {
			t.Errorf("%+v, want a remedy with %q", all, want)
		}
	}
}

func mutatingPolicy(name, plural string) change {
	return func(_ *testing.T, f *Facts) {
		f.MutatingPolicies = append(f.MutatingPolicies, &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.MutatingAdmissionPolicySpec{MatchConstraints: &admissionv1.MatchResources{
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{APIGroups: []string{""}, Resources: []string{plural}},
				}}}}}})
	}
}

// registeredByHAMi has the first node's GPUs given out by HAMi's device plugin.
func registeredByHAMi(_ *testing.T, f *Facts) {
	f.Nodes[0].Annotations = map[string]string{annotationHAMi: `[{"id":"GPU-0","count":10,"devmem":23034}]`}
}

// memoryInBytes has all nodes' labels of memory in another unit than feature discovery's.
func memoryInBytes(_ *testing.T, f *Facts) {
	for _, n := range f.Nodes {
		n.Labels["nvidia.com/gpu.memory"] = "24152899584"
	}
}

// askedAgain has the last mutating webhook asked again.
func askedAgain(_ *testing.T, f *Facts) {
	f.Mutating[len(f.Mutating)-1].Webhooks[0].ReinvocationPolicy = new(admissionv1.IfNeededReinvocationPolicy)
}

func right(allowed bool) change {
	return func(_ *testing.T, f *Facts) {
		f.Rights = append(f.Rights, Right{Verb: "create", Resource: "namespaces", Allowed: allowed})
	}
}

func unreadable(what string) change {
	return func(_ *testing.T, f *Facts) { f.Unread = append(f.Unread, Unread{what, errors.New("forbidden")}) }
}

func own(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: api.SystemNamespace, Labels: map[string]string{"app.kubernetes.io/name": "gpuslice"}}
}

// installedWith is an installation with so many of three replicas ready and a CA bundle.
func installedWith(ready int32, bundle []byte) change {
	return func(_ *testing.T, f *Facts) {
		client := admissionv1.WebhookClientConfig{CABundle: bundle}
		three := int32(3)
		meta := own("gpuslice")
		meta.Namespace = ""
		f.Mutating = append(f.Mutating, &admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta,
			Webhooks: []admissionv1.MutatingWebhook{{Name: "pods.gpuslice.dev", ClientConfig: client}}})
		f.Validating = append(f.Validating, &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta,
			Webhooks: []admissionv1.ValidatingWebhook{{Name: "verify.gpuslice.dev", ClientConfig: client}}})
		f.Deployment = &appsv1.Deployment{ObjectMeta: own("gpuslice-webhook"), Spec: appsv1.DeploymentSpec{Replicas: &three},
			Status: appsv1.DeploymentStatus{ReadyReplicas: ready}}
		f.Flows = append(f.Flows, &flowcontrolv1.FlowSchema{ObjectMeta: meta})
		for _, l := range lastLine {
			f.LastLine = append(f.LastLine, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: own(l.policy)})
			f.Bindings = append(f.Bindings, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: own(l.policy),
				Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: l.policy}})
		}
	}
}

// versions are those of this program, of the webhook's image, and of its Deployment's label.
func versions(program, image, label string) change {
	return func(_ *testing.T, f *Facts) {
		f.Program = program
		f.Deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "webhook", Image: "registry.test:5000/gpuslice/webhook" + image}}
		f.Deployment.Labels = map[string]string{labelVersion: label}
	}
}

// unbound removes the binding of an admission policy.
func unbound(name string) change {
	return func(_ *testing.T, f *Facts) {
		f.Bindings = slices.DeleteFunc(f.Bindings,
			func(b *admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Spec.PolicyName == name })
	}
}

func strictNamespace(name string) change {
	return func(_ *testing.T, f *Facts) {
		f.Namespaces = append(f.Namespaces,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.LabelEnforce: api.EnforceStrict}}})
	}
}

// bundle is a CA bundle of certificates that live so long from at.
func bundle(t *testing.T, lives ...time.Duration) []byte {
	t.Helper()
	var out bytes.Buffer
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for i, life := range lives {
		template := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), NotBefore: at.Add(-time.Hour), NotAfter: at.Add(life), IsCA: true}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

const day = 24 * time.Hour

// deviceClass is one with an extended resource name.
func deviceClass(name, extended string) change {
	return func(_ *testing.T, f *Facts) {
		c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if extended != "" {
			c.Spec.ExtendedResourceName = &extended
		}
		f.Classes = append(f.Classes, c)
	}
}

// openForClaims is a governed namespace that fails open for claims, in a cluster with GPUs and network devices, and what is written there.
func openForClaims(document, closed string) change {
	return func(t *testing.T, f *Facts) {
		deviceClass("gpu.nvidia.com", "")(t, f)
		nic := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "nic"}}
		nic.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: "device.driver == 'nic.example'"}}}
		f.Classes = append(f.Classes, nic)
		namespace("team-a", "", document)(t, f)
		f.Namespaces[0].Labels[api.LabelFail] = api.FailOpenForClaims
		f.Namespaces[0].Annotations = map[string]string{api.AnnotationClosedClasses: closed}
	}
}

// relabeled gives the namespace another label.
func relabeled(key, value string) change {
	return func(_ *testing.T, f *Facts) { f.Namespaces[0].Labels[key] = value }
}

// claimTemplate is one of a class.
func claimTemplate(class string) change {
	return func(_ *testing.T, f *Facts) {
		classes := map[string]*resourcev1.DeviceClass{}
		for _, c := range f.Classes {
			classes[c.Name] = c
		}
		f.DeviceClaims = webhookcluster.Claims{Classes: classes, Templates: map[string]*resourcev1.ResourceClaimSpec{"team-a/x": {
			Devices: resourcev1.DeviceClaim{
				Requests: []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class}}},
			}}}}
	}
}

// adminAccess has the template reach devices that others hold, without a device of its own.
func adminAccess(_ *testing.T, f *Facts) {
	f.DeviceClaims.Templates["team-a/x"].Devices.Requests[0].Exactly.AdminAccess = new(true)
}

// madeByScheduler has claims of these names in the place of templates.
func madeByScheduler(names ...string) change {
	return func(_ *testing.T, f *Facts) {
		f.DeviceClaims.Claims = map[string]*resourcev1.ResourceClaimSpec{}
		for _, name := range names {
			f.DeviceClaims.Claims["team-a/"+name] = f.DeviceClaims.Templates["team-a/x"]
		}
		f.DeviceClaims.Templates = nil
	}
}

// published is a GPU of NVIDIA's driver that claims share, each taking so much by default; "": they do not share it.
func published(node, taken string) change {
	return func(_ *testing.T, f *Facts) {
		memory := resourcev1.DeviceCapacity{Value: resource.MustParse("80Gi")}
		if taken != "" {
			memory.RequestPolicy = &resourcev1.CapacityRequestPolicy{Default: new(resource.MustParse(taken))}
		}
		f.Slices = append(f.Slices,
			&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-" + node}, Spec: resourcev1.ResourceSliceSpec{
				Driver: "gpu.nvidia.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
				Devices: []resourcev1.Device{{Name: "gpu-0", AllowMultipleAllocations: new(taken != ""),
					Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": memory}}}}})
	}
}

// publishedAs is a shared GPU that counts something beside its memory, of which a claim takes so much by default.
func publishedAs(capacity resourcev1.QualifiedName, amount, taken string) change {
	return func(t *testing.T, f *Facts) {
		published("n", taken)(t, f)
		f.Slices[0].Spec.Devices[0].Capacity[capacity] = resourcev1.DeviceCapacity{Value: resource.MustParse(amount)}
	}
}

// allowsClaims is a namespace whose policy allows slices by claim.
func allowsClaims(t *testing.T, f *Facts) { namespace("team-a", "", "strategies: [claim]\n")(t, f) }

// TestDriverRemedy: who installs the driver upgrades it.
func TestDriverRemedy(t *testing.T) {
	t.Parallel()
	for want, changes := range map[string][]change{
		"kubectl patch clusterpolicy cluster-policy ": {},
		"leaves it alone there":                       {label(labelDeployDriver, "pre-installed")},
		"the host has 550.54.16":                      {label(labelDeployDriver, "pre-installed"), label(labelVGPU, "true"), label(labelVGPUHost, "550.54.16")},
	} {
		all := checkDrivers(facts(t, append([]change{nodes("l4-old-driver")}, changes...)...))
		if len(all) != 1 || !strings.Contains(all[0].Remedy, want) || len(changes) > 0 && strings.Contains(all[0].Remedy, "kubectl patch") {
			t.Errorf("%+v, want a remedy with %q", all, want)
		}
	}
}

// TestDeclaration: the pool that a remedy declares is one that the default policy accepts, and that has the nodes.
func TestDeclaration(t *testing.T) {
	t.Parallel()
	renamed := []change{nodes("a100-plain"), offering("nvidia.com/a100")}
	remedy := facts(t, renamed...).offeringUnknown().Remedy
	_, declared, _ := strings.Cut(remedy, "default policy: ")
	declared, _, _ = strings.Cut(declared, "\n")
	all := checkNodes(facts(t, append(renamed, defaultPolicy(declared+"\n"))...))
	if len(all) != 1 || all[0].Level != OK || !strings.HasPrefix(all[0].Summary, "pool renamed offers nvidia.com/a100 by exclusive") {
		t.Errorf("%q: %+v", declared, all)
	}
}

func TestPoolOfClaims(t *testing.T) {
	t.Parallel()
	got := poolFinding(&pools.Pool{Name: "gpu", Strategy: "claim", DeviceClass: "gpu.nvidia.com"}, nil)
	if want := "pool gpu offers claims of DeviceClass gpu.nvidia.com by claim; device memory unknown"; got.Summary != want {
		t.Errorf("%s, want %s", got.Summary, want)
	}
}

// TestUnclaimable says of each driver's devices what a claim of memory could not name.
func TestUnclaimable(t *testing.T) {
	t.Parallel()
	for want, tt := range map[string]struct {
		capacity      resourcev1.QualifiedName
		amount, taken string
	}{
		"cores is counted too: a claim that does not name it takes 100": {"gpu.nvidia.com/cores", "100", "80Gi"},
		"who names no amount takes 0 of 80Gi memory":                    {"shares", "4", "0"},
		"": {"shares", "4", "80Gi"},
	} {
		f := &Facts{}
		if publishedAs(tt.capacity, tt.amount, tt.taken)(t, f); unclaimable("gpu.nvidia.com", &f.Slices[0].Spec.Devices[0]) != want {
			t.Errorf("%q, want %q", unclaimable("gpu.nvidia.com", &f.Slices[0].Spec.Devices[0]), want)
		}
	}
}

// waits is a pod that waits for a claim by a template, while another claim has so much of node n's gpu-0.
func waits(template, taken string) change {
	return func(_ *testing.T, f *Facts) {
		f.WaitingPods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "p"},
			Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpuslice", ResourceClaimTemplateName: &template}}}}}
		if taken == "" {
			return
		}
		f.Claims = []resourcev1.ResourceClaim{{Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{
				Driver: "gpu.nvidia.com", Pool: "n", Device: "gpu-0",
				ConsumedCapacity: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(taken)}}}}}}}}
	}
}

// claimMade makes a claim for the pod that waits, and gives it a device or not.
func claimMade(device bool) change {
	return func(_ *testing.T, f *Facts) {
		name := "p-gpuslice-x"
		claim := resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}}
		if device {
			claim.Status.Allocation = &resourcev1.AllocationResult{}
		}
		f.Claims = append(f.Claims, claim)
		f.WaitingPods[0].Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpuslice", ResourceClaimName: &name}}
	}
}

// publishedThere is published on the first of the nodes.
func publishedThere(taken string) change {
	return func(t *testing.T, f *Facts) { published(f.Nodes[0].Name, taken)(t, f) }
}

// offersNothing has no node offer a GPU.
func offersNothing(_ *testing.T, f *Facts) {
	for _, n := range f.Nodes {
		n.Status.Allocatable = nil
	}
}

// offering has each node offer a resource alone.
func offering(name corev1.ResourceName) change {
	return func(_ *testing.T, f *Facts) {
		for _, n := range f.Nodes {
			n.Status.Allocatable = corev1.ResourceList{name: resource.MustParse("2")}
		}
	}
}

// row is what one check says about some facts.
type row struct {
	name  string
	facts []change
	check string
	level Level // "": the check says nothing of the kind
	want  string
}

// rows are about a cluster and the installation.
func rows(t *testing.T) []row {
	envFalse := corev1.EnvVar{Name: envvarSetting, Value: "false"}
	shared := "version: v1\nsharing:\n  timeSlicing:\n    renameByDefault: true\n    failRequestsGreaterThanOne: true\n    resources: [{name: nvidia.com/gpu, replicas: 4}]\n"
	hostPath := "strategies: [mps]\npod: {tolerations: [{key: example.com/mps, operator: Exists}]}\n"
	ownDaemon := "pools: {declared: [{name: own-mps, selector: {example.com/mps: host}, resource: nvidia.com/gpu.shared, strategy: mps, " +
		"mpsProvider: host-daemon, deviceMemory: 81559Mi, replicas: 8, driver: 580.95.05}]}\n"
	return []row{
		{"a version that is too old", []change{minorVersion("29")}, "kubernetes-version", Problem, "older than 1.30"},
		{"a provider's version", []change{minorVersion("31+")}, "kubernetes-version", OK, "Kubernetes"},
		{"a webhook of this version", []change{installedWith(3, nil), versions("v0.3.0+a", ":v0.3.0_a", "")}, "webhook-version", OK, "so is the webhook"},
		{"a webhook of another version", []change{installedWith(3, nil), versions("v0.3.0", ":v0.2.0", "")},
			"webhook-version", Note, "gpuslice v0.3.0 and the webhook v0.2.0"},
		{"a webhook by digest, with a label", []change{installedWith(3, nil), versions("v0.3.0", "@sha256:01", "0.2.0")},
			"webhook-version", Note, "the webhook 0.2.0"},
		{"a webhook whose tag is no version", []change{installedWith(3, nil), versions("v0.3.0", ":test", "")}, "webhook-version", OK, "unknown version"},
		{"a webhook whose tag is no version, from a chart", []change{installedWith(3, nil), versions("v0.3.0", ":latest", "0.2.0")},
			"webhook-version", Note, "the webhook 0.2.0"},
		{"a webhook by digest", []change{installedWith(3, nil), versions("v0.3.0", "@sha256:01", "")}, "webhook-version", OK, "unknown version"},
		{"no webhook", nil, "webhook-version", "", ""},
		{"a version nobody understands", []change{minorVersion("x")}, "kubernetes-version", Note, "not understood"},
		{"no GPU at all", nil, "gpu-nodes", Warning, "none of the 0 nodes"},
		{"shared GPUs", []change{nodes("l4-timeslicing-renamed")}, "gpu-nodes", OK, "nvidia.com/gpu.shared by time-slicing, 4 replicas"},
		{"MIG instances", []change{nodes("a100-mig-mixed")}, "gpu-nodes", OK, "nvidia.com/mig-"},
		{"nodes that tell nothing", []change{nodes("unlabelled")}, "gpu-labels", Warning, "without the labels"},
		{"GKE's nodes", []change{nodes("gke-t4-timesharing")}, "gpu-labels", "", ""},
		{"GKE's nodes show no driver", []change{nodes("gke-t4-timesharing")}, "drivers", "", ""},
		{"GKE's nodes with whole GPUs", []change{nodes("unlabelled"), label(labelGKEAccelerator, "nvidia-l4")}, "gpu-labels", "", ""},
		{"a new accelerator of GKE", []change{nodes("unlabelled"), label(labelGKEAccelerator, "nvidia-z9")},
			"gpu-labels", Warning, "of which gpuslice does not know the memory"},
		{"GKE's nodes with another plugin", []change{nodes("gke-l4-own-plugin")}, "gpu-labels", Warning, "without the labels of GPU feature discovery"},
		{"GKE's nodes with another plugin are no exclusive ones", []change{nodes("gke-l4-own-plugin")}, "gpu-nodes", Warning, "an unknown strategy"},
		{"Karpenter's nodes", []change{nodes("unlabelled"), label("karpenter.k8s.aws/instance-gpu-name", "a10g")},
			"gpu-labels", Warning, "have the labels of an instance type"},
		{"Karpenter's nodes on Azure", []change{nodes("unlabelled"), label("karpenter.azure.com/sku-gpu-name", "A100")},
			"gpu-labels", Warning, "have the labels of an instance type"},
		{"Karpenter's nodes with a number of replicas alone", []change{nodes("unlabelled"), label("karpenter.k8s.aws/instance-gpu-name", "t4"),
			label("nvidia.com/gpu.replicas", "2")}, "gpu-labels", Warning, "without the labels of GPU feature discovery"},
		{"Karpenter's node without a device plugin", []change{nodes("unlabelled"), label("karpenter.k8s.aws/instance-gpu-name", "t4"), offersNothing},
			"gpu-nodes", Note, "no device plugin offers them"},
		{"GKE's node without a driver", []change{nodes("gke-t4-timesharing"), offersNothing}, "gpu-nodes", Note, "no device plugin offers them"},
		{"a node for virtual machines", []change{nodes("a100-plain"), label("nvidia.com/gpu.workload.config", "vm-passthrough"), offersNothing},
			"gpu-nodes", "", "no device plugin offers them"},
		{"a node for virtual machines that offers cards", []change{nodes("a100-plain"), label(labelWorkload, "vm-passthrough"), offering("nvidia.com/GA100_A100")},
			"gpu-nodes", Note, "passed through to virtual machines"},
		{"a node for virtual machines beside another", []change{nodes("a100-plain"), label(labelWorkload, "vm-passthrough"),
			offering("nvidia.com/GA100_A100"), nodes("l4-timeslicing-renamed")}, "gpu-nodes", Note, "passed through to virtual machines"},
		{"a node for virtual machines is no reason to install a device plugin", []change{nodes("a100-plain"), label(labelWorkload, "vm-passthrough"),
			offering("nvidia.com/GA100_A100")}, "gpu-nodes", "", "no name begins with"},
		{"a node of KubeVirt without the GPU Operator", []change{nodes("unlabelled"), offering("nvidia.com/GA100_A100"), func(_ *testing.T, f *Facts) {
			f.Nodes[0].Status.Allocatable["devices.kubevirt.io/kvm"] = resource.MustParse("1k")
		}}, "gpu-nodes", Note, "passed through to virtual machines"},
		{"nodes for virtual machines by default", []change{nodes("a100-plain"), offering("nvidia.com/GA100_A100"),
			operator("{sandboxWorkloads: {enabled: true, defaultWorkload: vm-passthrough}}")}, "gpu-nodes", Note, "passed through to virtual machines"},
		{"a node for containers where virtual machines are the default", []change{nodes("a100-plain"), label(labelWorkload, "container"), offersNothing,
			operator("{sandboxWorkloads: {enabled: true, defaultWorkload: vm-passthrough}}")}, "gpu-nodes", Note, "no device plugin offers them"},
		{"an operator for virtual machines", []change{operator("{sandboxWorkloads: {enabled: true, defaultWorkload: vm-passthrough}}")},
			"cluster-policy", Warning, "for virtual machines"},
		{"an operator for containers", []change{operator("{sandboxWorkloads: {enabled: true, defaultWorkload: container}}")},
			"cluster-policy", "", "for virtual machines"},
		{"renamed GPUs", []change{nodes("a100-plain"), offering("nvidia.com/a100")}, "gpu-nodes", Warning, "a renamed resource needs a declared pool"},
		{"renamed GPUs are offered", []change{nodes("a100-plain"), offering("nvidia.com/a100")}, "gpu-nodes", "", "no device plugin offers them"},
		{"renamed GPUs of a declared pool", []change{nodes("a100-plain"), offering("nvidia.com/a100"), defaultPolicy("pools: {declared: [{name: renamed, " +
			"selector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}, resource: nvidia.com/a100, strategy: exclusive}]}\n")},
			"gpu-nodes", OK, "pool renamed offers nvidia.com/a100"},
		{"network cards alone", []change{nodes("unlabelled"), offering("nvidia.com/hostdev")}, "gpu-nodes", Warning, "none of the 1 nodes offers a GPU"},
		{"nodes of EKS Auto Mode", []change{nodes("unlabelled"), label("eks.amazonaws.com/instance-gpu-name", "l4")},
			"gpu-labels", Warning, "have the labels of an instance type"},
		{"Karpenter's nodes with feature discovery", []change{nodes("l4-timeslicing-renamed"), label("karpenter.k8s.aws/instance-gpu-name", "l4")},
			"gpu-labels", "", ""},
		{"nodes of a declared pool", []change{nodes("unlabelled"), defaultPolicy("pools: {declared: [{name: bare, selector: {kubernetes.io/hostname: bare-1}, " +
			"resource: nvidia.com/gpu, strategy: exclusive, deviceMemory: 23034Mi, replicas: 1}]}\n")}, "gpu-labels", "", ""},
		{"nodes that tell all", []change{nodes("l4-timeslicing-renamed")}, "gpu-labels", "", ""},
		{"an old driver", []change{nodes("l4-old-driver")}, "drivers", Warning, "before 565.57"},
		{"an old driver that is no business of the operator's", []change{nodes("l4-old-driver"), label(labelDeployDriver, "pre-installed"),
			operator("{driver: {enabled: true, version: 550.90.07}, toolkit: {version: v1.20.2}}")}, "driver-limits", "", "one value away"},
		{"a driver with limits of its own", []change{nodes("h200-driver-limits")}, "drivers", Note, "driver 615"},
		{"a driver that is not told", []change{nodes("unlabelled")}, "drivers", Note, "without a driver label"},
		{"no device plugin to see", []change{nodes("l4-timeslicing-renamed")}, "device-plugin", Note, "no DaemonSet looks like"},
		{"a device plugin that is not everywhere", []change{nodes("l4-timeslicing-renamed"), software("nvidia-device-plugin", 1)},
			"device-plugin", Warning, "not ready on 1 nodes"},
		{"devices in a variable", []change{nodes("l4-timeslicing-renamed"), software("nvidia-device-plugin", 2)},
			"device-plugin", Note, "trust the value that a pod sets"},
		{"devices as mounts", []change{nodes("l4-timeslicing-renamed"),
			software("nvidia-device-plugin", 2, corev1.EnvVar{Name: "DEVICE_LIST_STRATEGY", Value: "volume-mounts"})},
			"device-plugin", "", "trust the value that a pod sets"},
		{"names are kept", []change{withConfig(strings.ReplaceAll(shared, "renameByDefault: true", "renameByDefault: false"))},
			"sharing", Warning, "keep the name"},
		{"two replicas may be asked for", []change{withConfig(strings.ReplaceAll(shared, "    failRequestsGreaterThanOne: true\n", ""))},
			"sharing", Warning, "two replicas may be requested"},
		{"sharing as it should be", []change{withConfig(shared)}, "sharing", OK, "4 replicas of nvidia.com/gpu"},
		{"sharing of a name of its own", []change{withConfig("resources: {gpus: [{pattern: '*', name: nvidia.com/a100}]}\n" +
			strings.ReplaceAll(shared, "nvidia.com/gpu", "nvidia.com/a100"))}, "sharing", Problem, "the device plugin offers no nvidia.com/a100"},
		{"sharing of a name with a slip", []change{withConfig(strings.ReplaceAll(shared, "nvidia.com/gpu", "nvidia.com/gpus"))},
			"sharing", "", "4 replicas of"},
		{"no sharing", []change{withConfig("version: v1\n")}, "sharing", "", ""},
		{"a name of two classes",
			[]change{deviceClass("a", "nvidia.com/gpu"), deviceClass("b", "nvidia.com/gpu"), deviceClass("c", "example.com/x")},
			"device-classes", Warning, "several device classes have the extended resource name nvidia.com/gpu"},
		{"a name for each class", []change{deviceClass("a", "nvidia.com/gpu"), deviceClass("b", ""), deviceClass("c", "")},
			"device-classes", "", ""},
		{"classes that are open under a quota",
			[]change{deviceClass("a", "nvidia.com/gpu"), namespace("team-a", "", "claims: count\nquota: {slices: 4}\n")},
			"open-classes", Warning, "counts late"},
		{"classes that are closed under a quota", []change{deviceClass("a", "nvidia.com/gpu"), namespace("team-a", "", "quota: {slices: 4}\n")},
			"open-classes", "", ""},
		{"open classes where nothing depends on it", []change{deviceClass("a", "nvidia.com/gpu"), namespace("team-a", "", "claims: count\n")},
			"open-classes", "", ""},
		{"classes that are closed for the sake of outages",
			[]change{deviceClass("a", "nvidia.com/gpu"), openForClaims("claims: count\nquota: {slices: 4}\n", "")}, "open-classes", "", ""},
		{"claims of other devices", []change{openForClaims("claims: count\n", ""), relabeled("gpuslice.dev/fail", ""), claimTemplate("nic")},
			"outage-claims", Note, "also of other devices"},
		{"claims of other devices where nothing governs",
			[]change{openForClaims("mode: off\n", ""), relabeled("gpuslice.dev/fail", ""), claimTemplate("nic")},
			"outage-claims", Note, "also of other devices"},
		{"claims of other devices in a namespace that fails open",
			[]change{openForClaims("", ""), relabeled("gpuslice.dev/fail", "open"), claimTemplate("nic")}, "outage-claims", "", ""},
		{"claims of GPUs", []change{openForClaims("", ""), relabeled("gpuslice.dev/fail", ""), claimTemplate("gpu.nvidia.com")},
			"outage-claims", "", ""},
		{"claims of GPUs to monitor them",
			[]change{openForClaims("", ""), relabeled("gpuslice.dev/fail", ""), claimTemplate("gpu.nvidia.com"), adminAccess},
			"outage-claims", "", ""},
		{"claims of GPUs to monitor them in a namespace that fails open for claims",
			[]change{openForClaims("", "gpu.nvidia.com,mig.nvidia.com"), claimTemplate("gpu.nvidia.com"), adminAccess}, "outage-claims", "", ""},
		{"claims of other devices to monitor them",
			[]change{openForClaims("", ""), relabeled("gpuslice.dev/fail", ""), claimTemplate("nic"), adminAccess},
			"outage-claims", Note, "also of other devices"},
		{"claims of other devices in a namespace that fails open for them",
			[]change{openForClaims("quota: {slices: 4}\n", "gpu.nvidia.com,mig.nvidia.com"), claimTemplate("nic")}, "outage-claims", "", ""},
		{"a namespace that fails open for claims of GPUs", []change{openForClaims("claims: count\n", ""), claimTemplate("nic")},
			"outage-claims", Warning, "beyond what policy allows"},
		{"claims of GPUs from before", []change{openForClaims("", "gpu.nvidia.com,mig.nvidia.com"), claimTemplate("gpu.nvidia.com")},
			"outage-claims", Warning, "beyond what policy allows"},
		{"claims that no pod may name in an outage", []change{openForClaims("", "gpu.nvidia.com,mig.nvidia.com"), claimTemplate("gpu.nvidia.com"),
			madeByScheduler("train-extended-resources-x2b7k", strings.Repeat("t", 58)+"x2b7k")}, "outage-claims", "", ""},
		{"claims of GPUs that no policy limits", []change{openForClaims("mode: off\n", ""), claimTemplate("gpu.nvidia.com")},
			"outage-claims", "", ""},
		{"claims that are not read", []change{group("resource.k8s.io"), group("resource.k8s.io/v1beta2")},
			"open-classes", Warning, "counts no claims"},
		{"claims that are read", []change{group("resource.k8s.io"), group("resource.k8s.io/v1")}, "open-classes", "", ""},
		{"shares that Cluster Autoscaler does not know",
			[]change{nodes("l4-timeslicing-renamed"), label("k8s.amazonaws.com/accelerator", "nvidia-l4")},
			"accelerator-labels", Warning, "#8095"},
		{"the label of a smaller cloud", []change{nodes("l4-timeslicing-renamed"), label("k8s.scw.cloud/gpu", "")},
			"accelerator-labels", Warning, "#8095"},
		{"shares that keep the name", []change{nodes("gke-t4-timesharing")}, "accelerator-labels", "", ""},
		{"shares without a label of a cloud", []change{nodes("l4-timeslicing-renamed")}, "accelerator-labels", "", ""},
		{"a NodePool without overlay", []change{nodes("l4-timeslicing-renamed"), label(nodePoolLabel, "l4")},
			"node-overlays", Warning, "starts no node"},
		{"a NodePool with another's overlay", []change{nodes("l4-timeslicing-renamed"), label(nodePoolLabel, "l4"), overlay("example.com/x")},
			"node-overlays", Warning, "starts no node"},
		{"a NodePool with an overlay", []change{nodes("l4-timeslicing-renamed"), label(nodePoolLabel, "l4"), overlay("nvidia.com/gpu.shared")},
			"node-overlays", "", ""},
		{"overlays that may not be read", []change{nodes("l4-timeslicing-renamed"), label(nodePoolLabel, "l4"), func(_ *testing.T, f *Facts) {
			f.Unread = append(f.Unread, Unread{whatOverlays, errNoFile})
		}}, "node-overlays", "", ""},
		{"shares without a count", []change{published("n", "0")}, "uncounted-shares", Warning, "takes no memory"},
		{"shares of all by default", []change{published("n", "80Gi")}, "uncounted-shares", "", ""},
		{"a device that is not shared", []change{published("n", "")}, "uncounted-shares", "", ""},
		{"plugin and driver on a node", []change{nodes("l4-timeslicing-renamed"), publishedThere("80Gi")},
			"two-offers", Problem, "GPUs of the same node"},
		{"plugin and driver on different nodes", []change{nodes("l4-timeslicing-renamed"), published("n", "80Gi")}, "two-offers", "", ""},
		{"amounts that are dropped", []change{func(_ *testing.T, f *Facts) { f.Amounts = "it drops the amount" }},
			"claim-amounts", Warning, "drops the amount"},
		{"cores beside memory", []change{publishedAs("cores", "100", "80Gi"), allowsClaims},
			"unclaimable-devices", Note, "strategy claim does not use them"},
		{"a number of shares", []change{publishedAs("shares", "4", "0"), allowsClaims},
			"unclaimable-devices", Note, "strategy claim does not use them"},
		{"shares that count memory", []change{publishedAs("shares", "4", "80Gi"), allowsClaims}, "unclaimable-devices", "", ""},
		{"cores where no policy allows claims", []change{publishedAs("cores", "100", "80Gi")}, "unclaimable-devices", "", ""},
		{"a pod that waits for more than is free", []change{published("n", "80Gi"), waits("gpuslice-20480mi", "70Gi")},
			"waiting-claims", Note, "than is free of any; free: 10Gi on n/gpu-0"},
		{"a pod that waits for an instance or more than is free", []change{published("n", "80Gi"), waits("gpuslice-1g.10gb-or-20480mi", "70Gi")},
			"waiting-claims", Note, "free: 10Gi on n/gpu-0"},
		{"a pod whose claim is allocated", []change{published("n", "80Gi"), waits("gpuslice-20480mi", "70Gi"), claimMade(true)},
			"waiting-claims", "", ""},
		{"a pod whose claim is not allocated", []change{published("n", "80Gi"), waits("gpuslice-20480mi", "70Gi"), claimMade(false)},
			"waiting-claims", Note, "free: 10Gi on n/gpu-0"},
		{"a pod that waits for what is free", []change{published("n", "80Gi"), waits("gpuslice-10240mi", "70Gi")}, "waiting-claims", "", ""},
		{"a pod that waits for no device", []change{waits("gpuslice-10240mi", "")},
			"waiting-claims", Note, "no node has a device that is shared by memory"},
		{"amounts that are kept", nil, "claim-amounts", "", ""},
		{"MPS without a daemon", []change{nodes("h100-mps-plugin")}, "mps-daemon", Warning, "no DaemonSet looks like"},
		{"MPS with a daemon that is not ready", []change{nodes("h100-mps-plugin"), software("mps-control-daemon", 1)},
			"mps-daemon", Problem, "not ready everywhere"},
		{"MPS with a daemon", []change{nodes("h100-mps-plugin"), software("mps-control-daemon", 2)}, "mps-daemon", OK, "ready on 2 nodes"},
		{"MIG", []change{nodes("a100-mig-mixed")}, "mig", OK, "MIG is on"},
		{"MIG under one name", []change{nodes("a100-mig-single")}, "mig", OK, "MIG is on"},
		{"a MIG strategy alone", []change{nodes("t4-plain-old-driver"), label("nvidia.com/mig.strategy", "single")}, "mig", "", ""},
		{"a MIG strategy beside whole GPUs", []change{nodes("a100-plain"), label("nvidia.com/mig.strategy", "mixed")}, "mig", "", ""},
		{"MIG strategy mixed and nothing offered", []change{nodes("a100-plain"), label("nvidia.com/mig.strategy", "mixed"), offersNothing},
			"mig", Warning, "neither instances nor GPUs"},
		{"MIG that failed", []change{nodes("a100-mig-mixed"), label("nvidia.com/mig.config.state", "failed")},
			"mig", Problem, "could not partition"},
		{"no toolkit to see", []change{nodes("l4-timeslicing-renamed")}, "visible-devices", Warning, "cannot be seen from the API"},
		{"a toolkit that believes everybody", []change{nodes("l4-timeslicing-renamed"), software("container-toolkit", 2)},
			"visible-devices", Problem, "did not request"},
		{"a toolkit that believes nobody", []change{nodes("l4-timeslicing-renamed"), software("container-toolkit", 2, envFalse)},
			"visible-devices", OK, "ignores"},
		{"baseline, and no hostPath", []change{nodes("l4-timeslicing-renamed"), namespace("a", "baseline", "strategies: [time-slicing]\n")},
			"pod-security", OK, "passes Pod Security baseline"},
		{"restricted, and no hostPath", []change{nodes("l4-timeslicing-renamed"), namespace("a", "restricted", "strategies: [time-slicing]\n")},
			"pod-security", OK, "passes Pod Security restricted"},
		{"privileged", []change{nodes("l4-timeslicing-renamed"), namespace("a", "privileged", "")}, "pod-security", "", ""},
		{"an MPS daemon's hostPath in baseline",
			[]change{nodes("h100-host-daemon"), defaultPolicy(ownDaemon), namespace("a", "baseline", hostPath)},
			"pod-security", Warning, "gets none in namespace a"},
		{"a sidecar injector", []change{mutator("istio-sidecar-injector", "pods")}, "other-mutators", Note, "other mutating webhooks"},
		{"an injector that is asked again after gpuslice", []change{mutator("kyverno-resource-mutating-webhook-cfg", "pods"), askedAgain},
			"other-mutators", Note, "are called again after gpuslice"},
		{"an injector that is asked again before gpuslice", []change{mutator("a-injector", "pods"), askedAgain},
			"other-mutators", Note, "other mutating webhooks change pods"},
		{"another GPU sharer", []change{mutator("hami-webhook", "*")}, "other-mutators", Warning, "another system that shares GPUs"},
		{"another GPU sharer in a governed namespace", []change{mutator("hami-webhook", "pods"), exceptLabeled("hami.io/webhook", "ignore"), namespace("a", "", "")},
			"other-mutators", Warning, "another system that shares GPUs"},
		{"another GPU sharer that leaves out governed namespaces",
			[]change{mutator("hami-webhook", "pods"), exceptLabeled("pod-security.kubernetes.io/enforce", "baseline"), namespace("a", "baseline", "")},
			"other-mutators", "", "another system that shares GPUs"},
		{"a sharer by annotations", []change{mutator("koordinator-mutating-webhook-configuration", "pods")}, "other-mutators", Warning, "another system that shares GPUs"},
		{"a policy that changes pods", []change{mutatingPolicy("add-env", "pods")}, "other-mutators", Note, "mutating admission policies change pods"},
		{"a policy on something else", []change{mutatingPolicy("add-env", "deployments")}, "other-mutators", "", ""},
		{"a node of HAMi's", []change{nodes("l4-timeslicing-renamed"), registeredByHAMi}, "other-plugins", Warning, "HAMi's device plugin"},
		{"nodes of NVIDIA's plugin", []change{nodes("l4-timeslicing-renamed")}, "other-plugins", "", ""},
		{"a memory label in bytes", []change{nodes("l4-timeslicing-renamed"), memoryInBytes}, "gpu-nodes", Warning, "device memory unknown"},
		{"a webhook on something else", []change{mutator("deployments", "deployments")}, "other-mutators", "", ""},
		{"a quota on the old name that gpuslice counts",
			[]change{nodes("l4-timeslicing-renamed"), namespace("a", "", ""), quota("a", "requests.nvidia.com/gpu")},
			"quotas", OK, "gpuslice counts pods"},
		{"a quota on the old name that nobody counts",
			[]change{nodes("l4-timeslicing-renamed"), namespace("a", "", "quota: {native: off}\n"), quota("a", "requests.nvidia.com/gpu")},
			"quotas", Warning, "nvidia.com/gpu.shared"},
		{"a quota on limits", []change{quota("b", "limits.nvidia.com/gpu")}, "uncounted-quotas", Warning, "limit nothing"},
		{"a quota on a bare name", []change{quota("b", "nvidia.com/gpu")}, "uncounted-quotas", Warning, "limit nothing"},
		{"a quota on requests", []change{quota("b", "requests.nvidia.com/gpu")}, "uncounted-quotas", "", ""},
		{"a quota on both names", []change{nodes("l4-timeslicing-renamed"), namespace("a", "", ""),
			quota("a", "requests.nvidia.com/gpu", "requests.nvidia.com/gpu.shared")},
			"quotas", "", ""},
		{"a quota where nothing is renamed", []change{nodes("l4-timeslicing-renamed"), quota("b", "requests.nvidia.com/gpu")}, "quotas", "", ""},
		{"Kueue", []change{group("kueue.x-k8s.io")}, "platform", Note, "Kueue"},
		{"GKE", []change{nodes("gke-t4-timesharing")}, "platform", Note, "this is GKE"},
		{"all rights", []change{right(true)}, "rights", OK, "you may"},
		{"a right that is missing", []change{right(true), right(false)}, "rights", Warning, "you may not"},
		{"nodes that may not be read", []change{unreadable(whatNodes)}, "unread", Warning, "nodes could not be read"},
		{"nodes that may not be read are not missing", []change{unreadable(whatNodes)}, "gpu-nodes", "", ""},
		{"nothing installed", nil, "installation", Note, "not installed"},
		{"an installation", []change{installedWith(3, bundle(t, 365*day))}, "webhooks", OK, "the API server calls"},
		{"no caBundle", []change{installedWith(3, nil)}, "webhooks", Problem, "cannot trust"},
		{"a good authority", []change{installedWith(3, bundle(t, 365*day))}, "authority", OK, "good until 2031-01-01"},
		{"an authority that ends soon", []change{installedWith(3, bundle(t, 3*day))}, "authority", Warning, "expires within 14 days"},
		{"an authority that ends soon beside its successor", []change{installedWith(3, bundle(t, 3*day, 365*day))},
			"authority", OK, "good until"},
		{"an authority that has ended", []change{installedWith(3, bundle(t, -time.Minute))}, "authority", Problem, "has expired"},
		{"an authority that is none", []change{installedWith(3, []byte("x"))}, "authority", Problem, "no certificate"},
		{"all replicas", []change{installedWith(3, nil)}, "replicas", OK, "3 of 3"},
		{"two of three replicas", []change{installedWith(2, nil)}, "replicas", Warning, "2 of 3"},
		{"no replica", []change{installedWith(0, nil)}, "replicas", Problem, "no replica"},
		{"a policy that is broken", []change{installedWith(3, nil), namespace("a", "", "mode: sometimes\n")},
			"policies", Problem, "cannot be used"},
		{"no policy", []change{installedWith(3, nil)}, "policies", Note, "no namespace is governed"},
		{"a policy", []change{installedWith(3, nil), namespace("a", "", "")}, "policies", OK, "1 namespaces are governed"},
		{"a priority of its own", []change{installedWith(3, nil)}, "priority", OK, "priority level"},
		{"a last line", []change{installedWith(3, nil)}, "last-line", OK, "by itself"},
		{"a last line without a policy", []change{installedWith(3, nil), func(_ *testing.T, f *Facts) { f.LastLine = f.LastLine[:1] }},
			"last-line", Warning, "tenants may run programs"},
		{"no binding of the strict policy", []change{installedWith(3, nil), unbound(strictPolicy)}, "last-line", Warning, "enforces nothing"},
		{"no binding of the strict policy, and a strict namespace", []change{installedWith(3, nil), unbound(strictPolicy), strictNamespace("a")},
			"last-line", Problem, "enforces nothing"},
	}
}

func TestChecks(t *testing.T) {
	for _, c := range slices.Concat(rows(t), configuredRows(), certificateRows(t)) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := examineCluster(facts(t, c.facts...))
			for _, f := range all {
				if f.Check == "" || f.Level == Problem && f.Remedy == "" && f.Check != "authority" {
					t.Errorf("it has no name, or is a problem without a remedy: %+v", f)
				}
				if f.Check == c.check && (c.level == "" || f.Level == c.level) && strings.Contains(f.Summary, c.want) {
					if c.level == "" {
						t.Errorf("it was found all the same: %+v", f)
					}
					return
				}
			}
			if c.level != "" {
				t.Errorf("not found in %+v", all)
			}
		})
	}
}

// TestChecksAreComplete: the table of TestChecks has a row in which each check finds something.
func TestChecksAreComplete(t *testing.T) {
	found := map[string]bool{}
	for _, r := range slices.Concat(rows(t), configuredRows(), certificateRows(t)) {
		found[r.check] = found[r.check] || r.level != ""
	}
	names := map[string]bool{}
	for _, c := range append(cluster(), installation()...) {
		if names[c.name] {
			t.Errorf("two checks are called %s", c.name)
		}
		if !found[c.name] {
			t.Errorf("no row of TestChecks has a finding of %s", c.name)
		}
		names[c.name] = true
	}
}
