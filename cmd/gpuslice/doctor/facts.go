package doctor

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// Facts are the facts about a cluster. Objects are as the API server gave them; nothing in them is changed.
type Facts struct {
	System  string // the namespace of the installation
	Now     time.Time
	Version *version.Info
	Groups  []string // API groups, and each with its versions

	Nodes        []*corev1.Node
	Namespaces   []*corev1.Namespace
	DaemonSets   []*appsv1.DaemonSet // of all namespaces
	Quotas       []*corev1.ResourceQuota
	Limits       []*corev1.LimitRange
	Runtimes     []*nodev1.RuntimeClass
	Overlaid     []string // the resources that Karpenter's NodeOverlays add to instance types
	Slices       []*resourcev1.ResourceSlice
	Claims       []resourcev1.ResourceClaim // of all namespaces, where pods wait for one
	Classes      []*resourcev1.DeviceClass
	DeviceClaims webhookcluster.Claims // of all namespaces
	Amounts      string                // why claims of an amount are not possible; "": they are, or it is not known

	ClusterPolicies []*pools.ClusterPolicy
	Operator        *pools.Operator     // of the first of them
	Configs         []*corev1.ConfigMap // those that NVIDIA's software reads
	Settings        []Setting           // configurations of NVIDIA's software in files of their own
	LimitedPods     []*corev1.Pod       // with a variable of the driver's own limit
	SharingPods     []*corev1.Pod       // that request nvidia.com/gpu.shared
	Held            map[held]bool       // requests for NVIDIA's resources of pods that have not ended; nil: unknown
	WaitingPods     []*corev1.Pod       // with a slice by claim, and no node
	APIServers      []*corev1.Pod       // of a control plane that runs as pods

	Mutating   []*admissionv1.MutatingWebhookConfiguration
	Validating []*admissionv1.ValidatingWebhookConfiguration

	MutatingPolicies []*admissionv1.MutatingAdmissionPolicy
	LastLine         []*admissionv1.ValidatingAdmissionPolicy // ours
	Bindings         []*admissionv1.ValidatingAdmissionPolicyBinding
	Flows            []*flowcontrolv1.FlowSchema // ours

	Certificates   []*certmanager.Certificate // cert-manager's, of the installation
	Issuers        []*certmanager.Issuer
	ClusterIssuers []*certmanager.ClusterIssuer
	Injector       *coordinationv1.Lease // of cert-manager's CA injector; nil: there is none

	Deployment *appsv1.Deployment // the webhook's; nil: there is none
	Pods       []*corev1.Pod      // the webhook's
	Policies   []*corev1.ConfigMap
	Tenants    []*corev1.ConfigMap // tenants' own documents
	State      *corev1.ConfigMap

	Program string // the version of this program

	Rights []Right
	Unread []Unread

	offers []pools.Pool // of the nodes, once a check needed them

	FromFiles    bool // and not from an API server
	SettingsOnly bool // the files hold no object of a cluster
}

// Right is something that an installation needs, and whether the user may do it.
type Right struct {
	Verb, Group, Resource, Namespace string
	Allowed                          bool
}

// Unread is an object that could not be read, so that nothing is known of it.
type Unread struct {
	What string
	Err  error
}

// addClusterPolicy adds a ClusterPolicy that is JSON.
func (f *Facts) addClusterPolicy(raw json.RawMessage) error {
	p, err := pools.ReadClusterPolicy(raw)
	if err != nil {
		return err
	}
	f.ClusterPolicies = append(f.ClusterPolicies, p)
	f.Operator = f.ClusterPolicies[0].Operator()
	return nil
}

// namedConfigs are the ConfigMaps that NVIDIA's DaemonSets mount, and those that a ClusterPolicy names.
func (f *Facts) namedConfigs() (all []types.NamespacedName) {
	add := func(namespace, name string) {
		if n := (types.NamespacedName{Namespace: namespace, Name: name}); name != "" && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	for _, d := range f.DaemonSets {
		if nvidia.PartOf(d) == nvidia.OtherSoftware {
			continue
		}
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.ConfigMap != nil {
				add(d.Namespace, v.ConfigMap.Name)
			}
		}
	}
	for _, p := range f.ClusterPolicies {
		add(operatorNamespace(p), p.Spec.DevicePlugin.Config.Name)
		add(operatorNamespace(p), p.Spec.MIGManager.Config.Name)
	}
	return all
}

// operatorNamespace is the namespace in which the operator looks for ConfigMaps.
func operatorNamespace(p *pools.ClusterPolicy) string {
	return cmp.Or(p.Status.Namespace, "gpu-operator")
}

// unread reports whether something could not be read.
func (f *Facts) unread(what string) bool {
	return slices.ContainsFunc(f.Unread, func(u Unread) bool { return u.What == what })
}

// Installed reports whether anything of gpuslice answers the API server.
func (f *Facts) Installed() bool {
	return f.Deployment != nil || len(ours(f.Mutating))+len(ours(f.Validating)) > 0
}

// source holds the objects from which the webhook reads pools.
func (f *Facts) source() pools.Source {
	classes := map[string]*resourcev1.DeviceClass{}
	for _, c := range f.Classes {
		classes[c.Name] = c
	}
	return pools.Source{Nodes: f.Nodes, Slices: f.Slices, Classes: classes}
}

// snapshot is the input of the webhook's decisions.
func (f *Facts) snapshot() *webhookcluster.Snapshot {
	return webhookcluster.ReadSnapshot(webhookcluster.Objects{
		Policies: f.Policies, Tenants: f.Tenants, State: f.State, Source: f.source(), Guard: installed.Guard(f.Deployment),
		Runtimes: pools.RuntimesOf(f.Runtimes, f.Operator),
	})
}

// Governed are the namespaces in which a policy of gpuslice gives pods slices, by their names in order, and the input
// of decisions there.
func (f *Facts) Governed() []Governed {
	snapshot, scope := f.snapshot(), installed.ScopeOf(f.Mutating, f.System)
	var out []Governed
	for _, ns := range f.Namespaces {
		in := snapshot.Input(api.Namespace{Name: ns.Name, Labels: ns.Labels})
		if !scope.Includes(ns.Name, ns.Labels) || in.Policy.Off() || ns.DeletionTimestamp != nil {
			continue
		}
		out = append(out, Governed{ns.Name, in})
	}
	return out
}

// Governed is a namespace under a policy.
type Governed struct {
	Name  string
	Input policies.Input
}

// object names an object as kubectl does.
func object(kind, namespace, name string) string {
	if namespace == "" {
		return kind + "/" + name
	}
	return kind + "/" + namespace + "/" + name
}

// ours are the objects that carry the label of an installation.
func ours[T interface{ GetLabels() map[string]string }](all []T) []T {
	var out []T
	for _, o := range all {
		if o.GetLabels()["app.kubernetes.io/name"] == "gpuslice" {
			out = append(out, o)
		}
	}
	return out
}
