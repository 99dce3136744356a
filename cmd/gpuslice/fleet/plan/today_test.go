package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/proposal"
)

// configMap is one with a document.
func configMap(namespace, name, key, text string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Data: map[string]string{key: text}}
}

// pluginIn is a DaemonSet that looks like NVIDIA's device plugin, and the ConfigMap that it mounts.
func pluginIn(namespace string) []runtime.Object {
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nvidia-device-plugin"}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "nvidia-device-plugin-ctr", Image: "nvcr.io/nvidia/k8s-device-plugin:v0.17.1"}}
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "c", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "plugin"}},
	}}}
	return []runtime.Object{d, configMap(namespace, "plugin", "any", "version: v1\nsharing: {}\n", nil),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
}

// TestTenantsPlugin: in a namespace that a policy governs, a tenant writes the DaemonSets and ConfigMaps, whatever they look like.
func TestTenantsPlugin(t *testing.T) {
	policy := configMap("gpuslice-system", "ours", "policy.yaml", "apiVersion: gpuslice.dev/v1\nnamespaces: {names: [team]}\n",
		map[string]string{"gpuslice.dev/policy": "true"})
	held := pluginIn("held")
	held[2].(*corev1.Namespace).Labels = map[string]string{labelPodSecurity: "baseline"}
	everywhere := configMap("gpuslice-system", "default", "policy.yaml", "apiVersion: gpuslice.dev/v1\n", policy.Labels)
	broken := configMap("gpuslice-system", "default", "policy.yaml", "apiVersion: gpuslice.dev/v1\nno: 1\n", policy.Labels)
	bare := pluginIn("nvidia")[0].(*appsv1.DaemonSet)
	bare.Spec.Template.Spec.Volumes = nil
	disguised := pluginIn("team")
	disguised[0].(*appsv1.DaemonSet).Spec.Template.Spec.Containers[0].Name = "nvidia-mig-manager"
	f := &demand.Fleet{Kinds: []demand.Kind{{}}}
	p := &proposal.Plan{Next: &layout.Assignment{}}
	for name, c := range map[string]struct {
		objects    []runtime.Object
		want, note string
	}{
		"beside NVIDIA's":                 {append(pluginIn("nvidia"), pluginIn("team")...), "nvidia/plugin", "team/nvidia-device-plugin"},
		"alone":                           {pluginIn("team"), "team/plugin", ""},
		"beside one that mounts nothing":  {append(pluginIn("team"), pluginIn("nvidia")[0]), "", "team/nvidia-device-plugin"},
		"as another part of NVIDIA's":     {append(disguised, bare), "", ""},
		"NVIDIA's under a default policy": {append(pluginIn("nvidia"), everywhere), "nvidia/plugin", ""},
		"NVIDIA's under a broken policy":  {append(pluginIn("nvidia"), broken), "nvidia/plugin", "correct the policy"},
		"NVIDIA's alone":                  {pluginIn("nvidia"), "nvidia/plugin", ""},
		"under Pod Security":              {append(pluginIn("nvidia"), held...), "nvidia/plugin", "(Pod Security baseline)"},
		"where nobody governs":            {pluginIn("other"), "other/plugin", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObjects("gpuslice-system")
			if err := o.readCluster(t.Context(), fake.NewClientset(append(c.objects, policy)...)); err != nil {
				t.Fatal(err)
			}
			got := ""
			if o.plugin.today != nil {
				got = o.plugin.today.Namespace + "/" + o.plugin.today.Name
			}
			if got != c.want {
				t.Errorf("ConfigMap %q is changed, want %q", got, c.want)
			}
			if notes := strings.Join(o.notes(f, p), "\n"); !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
		})
	}
}

// TestAgainstTenants: of all ConfigMaps of a cluster, those of tenants do not take the place of NVIDIA's.
func TestAgainstTenants(t *testing.T) {
	const nvidias = `
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: plugin, namespace: nvidia}, data: {any: "version: v1\nsharing: {}\n"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: default-mig-parted-config, namespace: gpu-operator}, data: {config.yaml: "version: v1\nmig-configs:\n  all-disabled: [{devices: all, mig-enabled: false}]\n"}}
`
	const tenants = `
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: plugin, namespace: team}, data: {any: "version: v1\nsharing: {}\n"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: default-mig-parted-config, namespace: team}, data: {config.yaml: "version: v1\nmig-configs:\n  forged: [{devices: all, mig-enabled: false}]\n"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: layouts, namespace: team}, data: {config.yaml: "version: v1\nmig-configs:\n  forged: [{devices: all, mig-enabled: false}]\n"}}
`
	governed := policyNamed("ours", "namespaces: {names: [team]}\n")
	for _, text := range []string{nvidias + tenants + governed, tenants + governed + nvidias} {
		o := objectsOf(t, text)
		if o.plugin.today == nil || o.plugin.today.Namespace != "nvidia" || o.mig.today != nil || o.mig.next.Namespace != "gpu-operator" ||
			strings.Contains(o.mig.next.Data[migKey], "forged") {
			t.Errorf("a tenant's ConfigMap is taken: %v, %v", o.plugin.today, o.mig.next)
		}
	}
	path := filepath.Join(t.TempDir(), "today.yaml")
	if err := os.WriteFile(path, []byte(governed+tenants+strings.ReplaceAll(tenants, "name: plugin", "name: plugin-2")), 0o600); err != nil {
		t.Fatal(err)
	}
	two := options{against: []string{path}}
	two.source.System = "gpuslice-system"
	if _, err := two.readObjects(t.Context(), cli.Streams{}); err == nil || !strings.Contains(err.Error(), "has the same purpose") {
		t.Errorf("one of two is taken: %v", err)
	}
	if o := objectsOf(t, governed+"---"+strings.SplitN(tenants, "---", 3)[1]); o.plugin.today == nil || o.plugin.today.Namespace != "team" {
		t.Errorf("a ConfigMap that is named alone is not taken: %v", o.plugin.today)
	}
}
