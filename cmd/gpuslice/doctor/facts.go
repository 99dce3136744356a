package doctor

import (
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/installed"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/cluster"
)

// Facts are what was found in a cluster. Objects are as the API server gave them; nothing in them is changed.
type Facts struct {
	System  string // the namespace of the installation
	Now     time.Time
	Version *version.Info
	Groups  []string // API groups

	Nodes      []*corev1.Node
	Namespaces []*corev1.Namespace
	DaemonSets []*appsv1.DaemonSet          // of all namespaces
	Configs    map[string]map[string]string // texts by key, of each ConfigMap that a DaemonSet of NVIDIA's mounts: "namespace/name"
	Quotas     []*corev1.ResourceQuota

	Mutating   []*admissionv1.MutatingWebhookConfiguration
	Validating []*admissionv1.ValidatingWebhookConfiguration
	LastLine   []*admissionv1.ValidatingAdmissionPolicy // ours
	Flows      []*flowcontrolv1.FlowSchema              // ours

	Deployment *appsv1.Deployment // the webhook's; nil: there is none
	Pods       []*corev1.Pod      // the webhook's
	Policies   []*corev1.ConfigMap
	Tenants    []*corev1.ConfigMap // tenants' own documents
	State      *corev1.ConfigMap

	Rights []Right
	Unread []Unread
}

// Right is something that an installation needs, and whether whoever asks may do it.
type Right struct {
	Verb, Group, Resource, Namespace string
	Allowed                          bool
}

// Unread is what could not be read, so that nothing is known of it.
type Unread struct {
	What string
	Err  error
}

// unread reports whether something could not be read.
func (f *Facts) unread(what string) bool {
	for _, u := range f.Unread {
		if u.What == what {
			return true
		}
	}
	return false
}

// Installed reports whether anything of gpuslice answers the API server.
func (f *Facts) Installed() bool {
	return f.Deployment != nil || len(ours(f.Mutating))+len(ours(f.Validating)) > 0
}

// snapshot is what the webhook decides by.
func (f *Facts) snapshot() *webhookcluster.Snapshot {
	return webhookcluster.ReadSnapshot(webhookcluster.Objects{
		Policies: f.Policies, Tenants: f.Tenants, State: f.State, Nodes: f.Nodes, Guard: installed.Guard(f.Deployment),
	})
}

// Governed are the namespaces in which a policy of gpuslice gives pods slices, by their names in order, and what a
// decision there rests on.
func (f *Facts) Governed() []Governed {
	snapshot := f.snapshot()
	var out []Governed
	for _, ns := range f.Namespaces {
		in := snapshot.Input(api.Namespace{Name: ns.Name, Labels: ns.Labels})
		if exempt(ns.Name, f) || in.Policy.Off() {
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

// exempt reports whether gpuslice never sees pods of the namespace.
func exempt(name string, f *Facts) bool {
	return name == f.System || strings.HasPrefix(name, "kube-")
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
