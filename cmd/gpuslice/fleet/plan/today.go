package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// readObjects reads today's ConfigMaps: those of --against, else those of the cluster if the fleet is the cluster's.
func (o *options) readObjects(ctx context.Context, s cli.Streams) (*objects, error) {
	out := newObjects(o.source.System)
	if len(o.against) > 0 {
		return out, out.readFiles(s, o.against)
	}
	if o.source.From != "" {
		return out, nil
	}
	connection, err := o.source.Kube.Connect(s)
	if err != nil {
		return nil, err
	}
	if err := out.readCluster(ctx, connection.Client); err != nil {
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("%w; name a file with today's ConfigMaps by --against", err)
		}
		return nil, fmt.Errorf("--changes: %w", err)
	}
	return out, nil
}

func (o *objects) readFiles(s cli.Streams, files []string) error {
	reader := manifest.Reader{Stdin: s.In}
	for _, d := range reader.Documents(files, manifest.MaxManifest) {
		all, unread := d.Objects()
		if len(unread) > 0 {
			return fmt.Errorf("--against %w", unread[0])
		}
		for _, ns := range manifest.Namespaces(all) {
			o.namespaces[ns.Name] = ns
		}
		for _, found := range all {
			if found.Kind != "ConfigMap" || found.APIVersion != "v1" {
				continue
			}
			m := &corev1.ConfigMap{}
			err := json.Unmarshal(found.Raw, m)
			if err == nil {
				err = o.add(m)
			}
			if err != nil {
				return fmt.Errorf("--against %s: %w", found, err)
			}
		}
	}
	if err := o.takeFound(installed.ScopeOf(nil, o.system), purposes{}); err != nil {
		return fmt.Errorf("--against: %w", err)
	}
	return nil
}

// takeFound takes what is in tenants' namespaces last, and for no purpose that DaemonSets of other namespaces have.
func (o *objects) takeFound(scope installed.Scope, others purposes) error {
	tenancy, known := o.tenancy(scope), purposes{}
	for _, tenants := range []bool{false, true} {
		for _, m := range o.found {
			if (tenancy(m.Namespace) != "") != tenants {
				continue
			}
			if err := o.take(m, known); err != nil {
				return fmt.Errorf("read ConfigMap %s/%s: %w", m.Namespace, m.Name, err)
			}
		}
		known = purposes{plugin: others.plugin || o.plugin.today != nil, mig: others.mig || o.mig.before != nil}
	}
	return nil
}

const labelPodSecurity = "pod-security.kubernetes.io/enforce"

// tenancy returns what shows that a namespace is a tenant's, for people; "": nothing does.
func (o *objects) tenancy(scope installed.Scope) func(namespace string) string {
	snapshot := o.snapshot()
	return func(namespace string) string {
		ns := o.namespace(namespace)
		switch in := snapshot.Input(ns); {
		case !scope.Includes(namespace, ns.Labels):
			return ""
		case in.PolicyError != nil: // which namespaces are tenants' is unknown
			return ""
		case !in.Policy.Off():
			return "policy " + in.Policy.Name
		case slices.Contains([]string{"baseline", "restricted"}, ns.Labels[labelPodSecurity]): // NVIDIA's pods do not run there
			return "Pod Security " + ns.Labels[labelPodSecurity]
		}
		return ""
	}
}

// configured are the parts of NVIDIA's that read what a plan changes.
var configured = []string{nvidia.DevicePlugin, nvidia.FeatureDiscovery, nvidia.MIGManager}

// readCluster reads policies, and the ConfigMaps that NVIDIA's DaemonSets mount: those of others may hold anything. Those of DaemonSets in
// tenants' namespaces are left out where other namespaces have such DaemonSets. A policy for all namespaces may govern NVIDIA's own.
func (o *objects) readCluster(ctx context.Context, client kubernetes.Interface) error {
	if err := o.readPolicies(ctx, client); err != nil {
		return err
	}
	scope, err := installed.ReadScope(ctx, client, o.system)
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	tenancy := o.tenancy(scope)
	daemons, err := client.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the DaemonSets that mount configurations: %w", err)
	}
	known, others := map[string]bool{}, purposes{}
	for _, d := range daemons.Items {
		if part := nvidia.PartOf(&d); slices.Contains(configured, part) && tenancy(d.Namespace) == "" {
			others.plugin, others.mig = others.plugin || part != nvidia.MIGManager, others.mig || part == nvidia.MIGManager
		}
	}
	for _, d := range daemons.Items {
		part := nvidia.PartOf(&d)
		if !slices.Contains(configured, part) {
			continue
		}
		if by := tenancy(d.Namespace); by != "" && (part != nvidia.MIGManager && others.plugin || part == nvidia.MIGManager && others.mig) {
			o.leftOut = append(o.leftOut, fmt.Sprintf("%s/%s (%s)", d.Namespace, d.Name, by))
			continue
		}
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.ConfigMap == nil || known[d.Namespace+"/"+v.ConfigMap.Name] {
				continue
			}
			known[d.Namespace+"/"+v.ConfigMap.Name] = true
			m, err := client.CoreV1().ConfigMaps(d.Namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err == nil {
				err = o.add(m)
			}
			if err != nil {
				return fmt.Errorf("read ConfigMap %s/%s: %w", d.Namespace, v.ConfigMap.Name, err)
			}
		}
	}
	return o.takeFound(scope, others)
}

func (o *objects) readPolicies(ctx context.Context, client kubernetes.Interface) error {
	policies, err := installed.Policies(ctx, client, o.system)
	if err != nil {
		return err
	}
	for _, m := range policies {
		if err := o.add(m); err != nil {
			return err
		}
	}
	if o.governing.Tenants, err = installed.Tenants(ctx, client, ""); err != nil {
		return err
	}
	if o.governing.State, err = installed.State(ctx, client, o.system); err != nil {
		return err
	}
	namespaces, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read namespaces: %w", err)
	}
	for _, ns := range namespaces.Items {
		o.namespaces[ns.Name] = manifest.Namespace(ns.Name, ns.Labels)
	}
	return nil
}
