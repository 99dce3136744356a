// Package target is the cluster for which a command answers: read from files, from an API server, or both.
package clusters

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// loader reads a cluster from the files that the flags name, and the rest from a live one where they want it.
type loader struct {
	flags    *Flags
	live     bool // a cluster was read
	reader   *manifest.Reader
	problems []error
	warnings []string
	policies []manifest.Policy      // of files
	objects  webhookcluster.Objects // of a live cluster; nodes, slices and classes of files too
	tenants  []*corev1.ConfigMap    // tenants' own documents in a live cluster
	classes  []*nodev1.RuntimeClass // of files
	operator *pools.Operator        // of files
	cluster  *Cluster
}

func (l *loader) fail(format string, args ...any) {
	l.problems = append(l.problems, fmt.Errorf(format, args...))
}

func (l *loader) warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}

// Load reads all that the flags name, and prints every problem on standard error. The command fails with any of them: an answer from
// half a cluster would be a wrong one.
func Load(ctx context.Context, flags *Flags, r *manifest.Reader, s cli.Streams) (*Cluster, error) {
	l := loader{flags: flags, reader: r, cluster: &Cluster{
		Labels: map[string]map[string]string{}, tenants: map[string]*config.TenantDocument{},
	}}
	if flags.Live() {
		if err := l.readLive(ctx, s); err != nil {
			return nil, err
		}
	}
	l.labels()
	l.readPolicies()
	l.readNodes()
	l.readNamespaces()
	for _, w := range l.warnings {
		fmt.Fprintln(s.Err, w)
	}
	for _, problem := range l.problems {
		fmt.Fprintln(s.Err, problem)
	}
	if len(l.problems) > 0 {
		return nil, cli.ExitError(cli.ExitNoAnswer)
	}
	l.finish()
	return l.cluster, nil
}

// takeTenants copies the tenants' own documents of a live cluster, where no file gives one.
func (l *loader) takeTenants() {
	if l.cluster.tenants[""] != nil {
		return
	}
	for _, m := range l.tenants {
		if place, _ := config.PlaceOf(m, l.flags.Kube.System); place.Tenant && l.cluster.tenants[m.Namespace] == nil {
			document := config.ReadTenantDocument(m)
			l.cluster.tenants[m.Namespace] = &document
		}
	}
}

// finish builds the cluster from the objects that were read.
func (l *loader) finish() {
	c := l.cluster
	switch image := cmp.Or(l.flags.GuardImage, defaultGuard); {
	case image == noGuard:
	case l.flags.GuardImage == "" && l.live:
		c.Guard = l.objects.Guard
	default:
		c.Guard = &config.GuardSettings{Image: image, CPU: installed.GuardCPU, Memory: installed.GuardMemory}
	}
	l.takeTenants()
	if c.Runtimes = l.objects.Runtimes; len(l.flags.Nodes) > 0 {
		c.Runtimes = pools.RuntimesOf(l.classes, l.operator)
	}
	if l.live && len(l.flags.Policies) == 0 {
		l.objects.Guard, l.objects.Runtimes = c.Guard, c.Runtimes
		c.snapshot = webhookcluster.ReadSnapshot(l.objects)
		c.Pools = c.snapshot.Pools()
		return
	}
	c.Book = config.NewBook(manifest.Governing(l.policies))
	spec := config.PoolsSpec{}
	if policy := c.Book.Default(); policy != nil {
		spec = policy.Pools
	}
	c.Resources = l.objects.Source.Resources()
	c.Pools, c.complete = l.objects.Source.Pools(spec, nil), spec.Complete
}

// labels reads --namespace-label.
func (l *loader) labels() {
	l.cluster.extra = map[string]string{}
	for _, text := range l.flags.namespaceLabels {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			l.fail("--namespace-label %q: accepted: KEY=VALUE", text)
			continue
		}
		l.cluster.extra[key] = value
	}
}

func (l *loader) readPolicies() {
	for _, path := range l.flags.Policies {
		l.readPolicyFile("--policies", path, manifest.PolicyReader{System: l.flags.Kube.System})
	}
	for _, path := range l.flags.tenantPolicies {
		l.readPolicyFile("--tenant-policy", path, manifest.PolicyReader{System: l.flags.Kube.System, Tenants: true})
	}
}

func (l *loader) readPolicyFile(flag, path string, as manifest.PolicyReader) {
	found, rest := as.Read(l.reader, []string{path})
	for _, p := range found {
		for _, problem := range p.Problems {
			l.fail("%s: %w", p.At, problem)
		}
		for _, w := range p.Warnings {
			l.warn("%s: %s", p.At, w)
		}
	}
	for _, failed := range rest.Unread {
		l.problems = append(l.problems, failed)
	}
	namespaces := l.addNamespaces(rest.Objects)
	if len(found) == 0 && namespaces == 0 && len(rest.Unread) == 0 {
		l.fail("%s %s: no policy in it; %s", flag, path, manifest.AcceptedPolicies)
	}
	l.policies = append(l.policies, found...)
	for _, p := range found {
		if !p.Place.Tenant {
			continue
		}
		if l.cluster.tenants[p.TenantOf] != nil {
			l.fail("%s: there is a tenant's own document for the same namespace already: %s", p.At, l.cluster.tenants[p.TenantOf].Name)
		}
		l.cluster.tenants[p.TenantOf] = &config.TenantDocument{Name: p.Name, Policy: p.Policy}
	}
}

func (l *loader) readNodes() {
	for _, path := range l.flags.Nodes {
		known := false
		for _, o := range l.objectsOf(path, manifest.MaxNodes) {
			is, err := l.readObject(o)
			if err != nil {
				l.problems = append(l.problems, err)
			}
			known = known || is
		}
		if !known && len(l.problems) == 0 {
			l.fail("--nodes %s: no Node in it; accepted: what kubectl get nodes -o yaml prints", path)
		}
	}
}

// readObject reads a node, a RuntimeClass or the GPU Operator's ClusterPolicy, how a guard reaches the driver, or a
// DeviceClass or ResourceSlice. It reports whether the object is one.
func (l *loader) readObject(o manifest.Object) (is bool, err error) {
	source := &l.objects.Source
	switch {
	case o.Kind == "Node" && o.APIVersion == "v1":
		node, err := decode[corev1.Node](o)
		source.Nodes = append(source.Nodes, node)
		return true, err
	case o.Kind == "RuntimeClass" && o.APIVersion == nodev1.SchemeGroupVersion.String():
		class, err := decode[nodev1.RuntimeClass](o)
		l.classes = append(l.classes, class)
		return true, err
	case o.Kind == "DeviceClass" && isResource(o):
		class, err := decode[resourcev1.DeviceClass](o)
		keep(&l.cluster.claims.Classes, class.Name, class)
		keep(&source.Classes, class.Name, class)
		return true, err
	case o.Kind == "ResourceSlice" && isResource(o):
		published, err := decode[resourcev1.ResourceSlice](o)
		beta, _ := decode[betaSlice](o) // the error is the same
		source.Slices = append(source.Slices, beta.within(published))
		return true, err
	case o.Kind == "ClusterPolicy" && o.APIVersion == "nvidia.com/v1":
		policy, err := pools.ReadClusterPolicy(o.Raw)
		if l.operator = policy.Operator(); err != nil {
			err = fmt.Errorf("%s: not a %s: %w", o, o.Kind, err)
		}
		return true, err
	}
	return false, nil
}

func (l *loader) readNamespaces() {
	for _, path := range l.flags.Namespaces {
		if l.addNamespaces(l.objectsOf(path, manifest.MaxManifest)) == 0 && len(l.problems) == 0 {
			l.fail("--namespaces %s: no Namespace in it", path)
		}
	}
}

// addNamespaces keeps the labels of the namespaces among objects, and returns how many there are.
func (l *loader) addNamespaces(objects []manifest.Object) (n int) {
	for _, o := range objects {
		if l.cluster.AddNamespace(o) {
			n++
		}
	}
	return n
}

func (l *loader) objectsOf(path string, limit int64) (all []manifest.Object) {
	for _, d := range l.reader.Documents([]string{path}, limit) {
		found, unread := d.Objects()
		for _, failed := range unread {
			l.problems = append(l.problems, failed)
		}
		all = append(all, found...)
	}
	return all
}
