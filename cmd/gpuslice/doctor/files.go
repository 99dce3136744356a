package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/policies/api"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// DumpCommand writes the files of which doctor -f makes a cluster.
func DumpCommand() string {
	var resources []string
	for _, k := range dumpedKinds(&Facts{}) {
		resources = append(resources, k.resource)
	}
	return "mkdir dump && kubectl version -o yaml > dump/version.yaml\nfor r in " + strings.Join(resources, " ") +
		"; do kubectl get $r -A -o yaml > dump/$r.yaml; done"
}

// errNoFile is why something in files is unknown.
var errNoFile = errors.New("it is not in the files")

// dumpedKind is a kind of object that files hold.
type dumpedKind struct {
	what             string // as it is reported where the files lack it
	resource         string // as kubectl names it
	apiVersion, kind string
	add              func(raw json.RawMessage) error
}

// dumpedKinds lists them. One is added here and nowhere else.
func dumpedKinds(f *Facts) []dumpedKind {
	return []dumpedKind{
		{whatNodes, "nodes", "v1", "Node", list(&f.Nodes)},
		{whatNamespaces, "namespaces", "v1", "Namespace", list(&f.Namespaces)},
		{whatDaemonSets, "daemonsets", "apps/v1", "DaemonSet", list(&f.DaemonSets)},
		{whatOperator, "clusterpolicies.nvidia.com", "nvidia.com/v1", "ClusterPolicy", f.addClusterPolicy},
		{whatConfigs, "configmaps", "v1", "ConfigMap", each(f.addConfigMap)},
		{whatQuotas, "resourcequotas", "v1", "ResourceQuota", list(&f.Quotas)},
		{whatLimits, "limitranges", "v1", "LimitRange", list(&f.Limits)},
		{whatRuntimes, "runtimeclasses", "node.k8s.io/v1", "RuntimeClass", list(&f.Runtimes)},
		{whatOverlays, "nodeoverlays.karpenter.sh", "karpenter.sh/v1alpha1", "NodeOverlay", f.addOverlay},
		{whatDevices, "resourceslices", "resource.k8s.io/v1", "ResourceSlice", list(&f.Slices)},
		{whatDevices, "deviceclasses", "resource.k8s.io/v1", "DeviceClass", list(&f.Classes)},
		{whatPods, "pods", "v1", "Pod", each(f.addPod)},
		{whatWebhooks, "mutatingwebhookconfigurations", "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", list(&f.Mutating)},
		{whatWebhooks, "validatingwebhookconfigurations", "admissionregistration.k8s.io/v1",
			"ValidatingWebhookConfiguration", list(&f.Validating)},
		{whatChanges, "mutatingadmissionpolicies", "admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", list(&f.MutatingPolicies)},
		{whatCertificates, "certificates.cert-manager.io", "cert-manager.io/v1", "Certificate", list(&f.Certificates)},
		{whatCertificates, "issuers.cert-manager.io", "cert-manager.io/v1", "Issuer", list(&f.Issuers)},
		{whatCertificates, "clusterissuers.cert-manager.io", "cert-manager.io/v1", "ClusterIssuer", list(&f.ClusterIssuers)},
		{whatLastLine, "validatingadmissionpolicies", "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", list(&f.LastLine)},
		{whatLastLine, "validatingadmissionpolicybindings", "admissionregistration.k8s.io/v1",
			"ValidatingAdmissionPolicyBinding", list(&f.Bindings)},
		{whatFlows, "flowschemas", "flowcontrol.apiserver.k8s.io/v1", "FlowSchema", list(&f.Flows)},
		{whatWebhook, "deployments", "apps/v1", "Deployment", each(f.addDeployment)},
	}
}

// list appends objects to a list of facts.
func list[T any](all *[]*T) func(json.RawMessage) error {
	return each(func(o *T) { *all = append(*all, o) })
}

// each decodes objects and passes them on.
func each[T any](add func(*T)) func(json.RawMessage) error {
	return func(raw json.RawMessage) error {
		o := new(T)
		if err := json.Unmarshal(raw, o); err != nil {
			return err
		}
		add(o)
		return nil
	}
}

// readFiles makes facts of files. Missing objects are unknown, as unreadable ones are in a cluster.
func readFiles(r *manifest.Reader, paths []string, system string) (*Facts, []error) {
	f := &Facts{System: system, Now: time.Now(), FromFiles: true}
	kinds := dumpedKinds(f)
	seen := map[string]bool{}
	var problems []error
	for _, d := range r.Documents(paths, manifest.MaxNodes) {
		for _, k := range kinds {
			if base := filepath.Base(d.At.File); strings.TrimSuffix(base, filepath.Ext(base)) == k.resource {
				seen[k.what] = true // a list without an item
			}
		}
		if d.Err == nil && f.addBare(d) {
			continue
		}
		objects, unread := d.Objects()
		for _, u := range unread {
			problems = append(problems, u)
		}
		for _, o := range objects {
			i := slices.IndexFunc(kinds, func(k dumpedKind) bool { return k.kind == o.Kind && k.apiVersion == o.APIVersion })
			if i < 0 {
				f.addValues(o)
				continue
			}
			seen[kinds[i].what] = true
			if err := kinds[i].add(o.Raw); err != nil {
				problems = append(problems, fmt.Errorf("%s: not a %s: %w", o, o.Kind, err))
			}
		}
	}
	for _, k := range kinds {
		for _, path := range paths {
			if _, err := os.Stat(filepath.Join(path, k.resource+".yaml")); err == nil {
				seen[k.what] = true // empty: the cluster does not have the kind
			}
		}
		unused := k.what == whatCertificates && len(f.injected()) == 0
		if !seen[k.what] && !f.unread(k.what) && !unused {
			f.Unread = append(f.Unread, Unread{k.what, errNoFile})
		}
	}
	if !seen[whatConfigs] {
		f.Unread = append(f.Unread, Unread{whatPolicies, errNoFile})
	}
	if seen[whatPods] && f.Held == nil {
		f.Held = map[held]bool{} // no pod has a GPU
	}
	f.SettingsOnly = len(seen) == 0 && len(f.Settings) > 0
	f.LastLine, f.Bindings, f.Flows = ours(f.LastLine), ours(f.Bindings), ours(f.Flows)
	return f, problems
}

// addBare adds a document that is no Kubernetes object: a configuration of NVIDIA's software, an empty list, or the
// output of kubectl version.
func (f *Facts) addBare(d manifest.Document) bool {
	var head struct {
		Kind          string            `json:"kind"`
		Items         []json.RawMessage `json:"items"`
		ServerVersion *version.Info     `json:"serverVersion"`
	}
	if json.Unmarshal(d.Raw, &head) != nil {
		return false
	}
	text := string(d.Text)
	switch {
	case head.Kind == "List" && len(head.Items) == 0:
	case head.Kind != "":
		return false
	case head.ServerVersion != nil:
		f.Version = head.ServerVersion
	case isConfig(text):
		f.Settings = append(f.Settings, Setting{Object: d.At.String(), Text: text})
	default:
		return false
	}
	return true
}

// addValues keeps an object of another kind if it holds the values of a chart with configurations of NVIDIA's software.
func (f *Facts) addValues(o manifest.Object) {
	if text := string(o.Raw); len(nvidia.CarriedConfigs(text)) > 0 {
		f.Settings = append(f.Settings, Setting{Object: object(strings.ToLower(o.Kind), o.Namespace, o.Name), Text: text})
	}
}

// addConfigMap keeps a ConfigMap if anything here reads it.
func (f *Facts) addConfigMap(m *corev1.ConfigMap) {
	switch {
	case m.Namespace == f.System && m.Name == webhookcluster.StateName:
		f.State = m
	case m.Namespace == f.System && m.Labels[api.LabelPolicy] == "true":
		f.Policies = append(f.Policies, m)
	case m.Name == api.TenantPolicyName:
		f.Tenants = append(f.Tenants, m)
	case isSetting(m):
		f.Configs = append(f.Configs, m)
	}
}

func (f *Facts) addPod(p *corev1.Pod) {
	switch {
	case isAPIServer(p):
		f.APIServers = append(f.APIServers, p)
	case isWebhook(p, f.System):
		f.Pods = append(f.Pods, p)
	default:
		f.addHolder(p)
	}
}

// addHolder keeps a pod of anybody's if a check looks at its part of a GPU.
func (f *Facts) addHolder(p *corev1.Pod) {
	f.addHeld(p)
	if limitedByDriver(p) {
		f.LimitedPods = append(f.LimitedPods, p)
	}
	if sharesGPU(p) {
		f.SharingPods = append(f.SharingPods, p)
	}
}

func (f *Facts) addDeployment(d *appsv1.Deployment) {
	if d.Namespace == f.System && len(ours([]*appsv1.Deployment{d})) > 0 && d.Labels["app.kubernetes.io/component"] == "webhook" {
		f.Deployment = d
	}
}
