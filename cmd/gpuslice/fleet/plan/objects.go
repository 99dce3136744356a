package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// Names of the files with ConfigMaps.
const (
	pluginFile = "device-plugin-configs.yaml"
	migFile    = "mig-parted-config.yaml"
	policyFile = "policy.yaml"
)

// migKey is the key of the MIG manager's document in NVIDIA's own ConfigMap.
const migKey = "config.yaml"

// object is a ConfigMap that a plan changes.
type object struct {
	today  *corev1.ConfigMap // nil: there is none
	key    string            // of the document; "": each key is one, as the device plugin has them
	before map[string]string // the documents from which the plan starts
	next   corev1.ConfigMap
}

// objects are the ConfigMaps of the device plugin, of the MIG manager, and of the policy for namespaces that no other policy names,
// with what pods' namespaces are governed by.
type objects struct {
	plugin, mig, policy object

	system     string
	governing  webhookcluster.Objects   // Policies, Tenants, State
	namespaces map[string]api.Namespace // those that are known
	broken     error                    // why a policy that may be the default cannot be used

	found   []*corev1.ConfigMap // that are no policies
	leftOut []string            // DaemonSets that tenants may have written, and why
}

// newObjects are those of a cluster that has none.
func newObjects(system string) *objects {
	made := func(namespace, name, key string) object {
		return object{key: key, next: corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{}}}
	}
	o := &objects{plugin: made("", "device-plugin-configs", ""), mig: made("", "mig-parted-config", migKey),
		policy: made(system, "default", api.PolicyKey),
		system: system, namespaces: map[string]api.Namespace{}}
	o.policy.next.Labels = map[string]string{api.LabelPolicy: "true"}
	return o
}

// add reads a policy in a ConfigMap, or keeps it for take.
func (o *objects) add(m *corev1.ConfigMap) error {
	place, _ := config.PlaceOf(m, o.system)
	switch {
	case place.Authority:
		return o.addPolicy(m)
	case place.Tenant:
		o.governing.Tenants = append(o.governing.Tenants, m)
		return nil
	case m.Namespace == o.system && m.Name == webhookcluster.StateName:
		o.governing.State = m
		return nil
	}
	o.found = append(o.found, m)
	return nil
}

// purposes are whether the ConfigMaps of the device plugin and of the MIG manager are known.
type purposes struct{ plugin, mig bool }

// take keeps a ConfigMap if a plan may change it, and it is not known already.
func (o *objects) take(m *corev1.ConfigMap, known purposes) error {
	mig, plugin := "", false // of several keys for the MIG manager the usual one, else the first
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		switch text := m.Data[key]; {
		case nvidia.IsMIGConfig(text):
			if mig == "" || key == migKey {
				mig = key
			}
		case isPluginConfig(text):
			plugin = true
		}
	}
	switch {
	case mig == "" && known.plugin, mig != "" && known.mig:
		return nil
	case mig == "" && plugin:
		return o.plugin.change(m)
	case mig == "":
		return nil
	case m.Name != nvidia.OperatorMIGConfig:
		o.mig.key = mig
		return o.mig.change(m)
	case o.mig.today == nil: // the operator undoes changes of its own: a copy gets the layouts
		o.mig.key, o.mig.next.Namespace, o.mig.next.Data, o.mig.before = mig, m.Namespace, maps.Clone(m.Data), m.Data
	}
	return nil
}

// change has the plan change a ConfigMap.
func (o *object) change(m *corev1.ConfigMap) error {
	if o.today != nil {
		return fmt.Errorf("ConfigMap %s/%s has the same purpose: name the one to change with --against", o.today.Namespace, o.today.Name)
	}
	o.today, o.before = m, m.Data
	o.next.ObjectMeta = metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: m.Labels, Annotations: maps.Clone(m.Annotations)}
	delete(o.next.Annotations, corev1.LastAppliedConfigAnnotation)
	o.next.Data, o.next.BinaryData, o.next.Immutable = maps.Clone(m.Data), m.BinaryData, m.Immutable
	if o.next.Data == nil {
		o.next.Data = map[string]string{}
	}
	return nil
}

// changed reports whether a plan changes the documents.
func (o *object) changed() bool { return !maps.Equal(o.before, o.next.Data) }

// pluginVersion is a line of every configuration in NVIDIA's documentation. Others' files can have the fields, such as flags.
var pluginVersion = regexp.MustCompile(`(?m)^version:[ \t]*["']?v1["']?[ \t\r]*(#.*)?$`)

// isPluginConfig reports whether the device plugin accepts a text.
func isPluginConfig(text string) bool {
	if !nvidia.IsPluginConfig(text) || !pluginVersion.MatchString(text) {
		return false
	}
	_, _, err := nvidia.ParsePluginConfig(text)
	return err == nil
}

// unused is a name of which nothing is known by a map, or the same; it begins as wanted.
func unused[T any](all map[string]T, wanted string, same func(T) bool) string {
	name := wanted
	for i := 2; ; i++ {
		if there, known := all[name]; !known || same(there) {
			return name
		}
		name = fmt.Sprintf("%s-%d", wanted, i)
	}
}

// layouts are those of the MIG manager.
func (o *object) layouts() (map[string]any, error) {
	document := struct {
		Layouts map[string]any `json:"mig-configs"`
	}{}
	if err := yaml.Unmarshal([]byte(o.next.Data[o.key]), &document); err != nil {
		return nil, fmt.Errorf("read the MIG manager's configuration %s: %w", o.next.Name, err)
	}
	if document.Layouts == nil {
		document.Layouts = map[string]any{}
	}
	return document.Layouts, nil
}

// setLayouts writes them.
func (o *object) setLayouts(all map[string]any) error {
	text, err := yaml.Marshal(map[string]any{"version": "v1", "mig-configs": all})
	if err != nil {
		return fmt.Errorf("write the MIG manager's configuration: %w", err)
	}
	o.next.Data[o.key] = string(text)
	return nil
}

// write adds the file of an object that changes, and how it changes, to the files of a plan.
func (o *object) write(file string, out changes) error {
	if !o.changed() {
		return nil
	}
	before := []byte("{}")
	if o.today != nil {
		today := o.next
		today.Data = maps.Clone(o.before)
		if nvidia.IsMIGConfig(today.Data[o.key]) { // as it is written, so that layouts alone differ
			normal := object{key: o.key, next: today}
			layouts, err := normal.layouts()
			if err == nil {
				err = normal.setLayouts(layouts)
			}
			if err != nil {
				return err
			}
		}
		before, _ = json.Marshal(today)
	}
	after, err := json.Marshal(o.next)
	if err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", o.next.Name, err)
	}
	text, err := yaml.JSONToYAML(after)
	if err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", o.next.Name, err)
	}
	diff, err := manifest.Diff(manifest.Object{At: manifest.Source{File: file},
		Kind: "ConfigMap", Namespace: o.next.Namespace, Name: o.next.Name, Raw: before}, after, "with the plan")
	if err != nil {
		return err
	}
	out[file] = string(text)
	out["changes.diff"] += diff
	return nil
}
