package target

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/manifest"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/installed"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// loader reads a cluster from the files that the flags name, and the rest from a live one where they want it.
type loader struct {
	flags    *Flags
	live     *live // nil: files alone
	reader   *manifest.Reader
	problems []error
	warnings []string
	policies []manifest.Policy
	source   pools.Source
	classes  []*nodev1.RuntimeClass
	operator *pools.Operator
	cluster  *Cluster
}

// Load reads all that the flags name, and prints every problem on standard error. Any ends the command: an answer from
// half a cluster would be a wrong one.
func Load(ctx context.Context, flags *Flags, r *manifest.Reader, s cli.Streams) (*Cluster, error) {
	l := loader{flags: flags, reader: r, cluster: &Cluster{
		Labels: map[string]map[string]string{}, tenants: map[string]*config.TenantDocument{},
	}}
	if flags.Live() {
		connection, err := Connect(&flags.Kube, s)
		if err != nil {
			return nil, err
		}
		l.cluster.Namespace = connection.Namespace
		if l.live, err = readLive(ctx, connection, flags); err != nil {
			return nil, err
		}
		l.takeLive()
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

// takeLive copies the objects of a live cluster. Files are read afterwards, and win.
func (l *loader) takeLive() {
	l.source, l.cluster.ranges, l.cluster.claims = l.live.source, l.live.ranges, l.live.claims
	l.cluster.ClaimsUnread = l.live.claimsUnread
	l.warnings = append(l.warnings, l.live.warnings...)
	maps.Copy(l.cluster.Labels, l.live.namespaces)
}

// takeTenants copies the tenants' own documents of a live cluster, where no file gives one.
func (l *loader) takeTenants() {
	if l.cluster.tenants[""] != nil {
		return
	}
	for _, m := range l.live.tenants {
		if place, _ := config.PlaceOf(m, l.flags.SystemNamespace); place.Tenant && l.cluster.tenants[m.Namespace] == nil {
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
	case l.flags.GuardImage == "" && l.live != nil:
		c.Guard = l.live.guard
	default:
		c.Guard = &config.GuardSettings{Image: image, CPU: installed.GuardCPU, Memory: installed.GuardMemory}
	}
	c.Runtimes = pools.RuntimesOf(l.classes, l.operator)
	if l.live != nil {
		l.takeTenants()
	}
	if l.live != nil && len(l.flags.Nodes) == 0 {
		c.Runtimes = l.live.runtimes
	}
	if l.live != nil && len(l.flags.Policies) == 0 {
		c.snapshot = webhookcluster.ReadSnapshot(webhookcluster.Objects{Policies: l.live.policies, State: l.live.state, Proofs: l.live.proofs,
			Advice: l.live.advice, Source: l.source, Guard: c.Guard, Runtimes: c.Runtimes})
		c.Pools = c.snapshot.Pools()
		return
	}
	c.Book = config.NewBook(manifest.Governing(l.policies))
	spec := config.PoolsSpec{}
	if policy := c.Book.Default(); policy != nil {
		spec = policy.Pools
	}
	c.Pools, c.complete = l.source.Pools(spec, nil), spec.Complete
}

// labels reads --namespace-label.
func (l *loader) labels() {
	l.cluster.extra = map[string]string{}
	for _, text := range l.flags.namespaceLabels {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			l.problems = append(l.problems, fmt.Errorf("--namespace-label %q: accepted: KEY=VALUE", text))
			continue
		}
		l.cluster.extra[key] = value
	}
}

func (l *loader) readPolicies() {
	for _, path := range l.flags.Policies {
		l.readPolicyFile("--policies", path, manifest.PolicyReader{System: l.flags.SystemNamespace})
	}
	for _, path := range l.flags.tenantPolicies {
		l.readPolicyFile("--tenant-policy", path, manifest.PolicyReader{System: l.flags.SystemNamespace, Tenants: true})
	}
}

func (l *loader) readPolicyFile(flag, path string, as manifest.PolicyReader) {
	found, rest := as.Read(l.reader, []string{path})
	for _, p := range found {
		for _, problem := range p.Problems {
			l.problems = append(l.problems, fmt.Errorf("%s: %w", p.At, problem))
		}
		for _, w := range p.Warnings {
			l.warnings = append(l.warnings, p.At+": "+w)
		}
	}
	for _, failed := range rest.Unread {
		l.problems = append(l.problems, failed)
	}
	namespaces := l.addNamespaces(rest.Objects)
	if len(found) == 0 && namespaces == 0 && len(rest.Unread) == 0 {
		l.problems = append(l.problems, fmt.Errorf("%s %s: no policy in it; %s", flag, path, manifest.AcceptedPolicies))
	}
	l.policies = append(l.policies, found...)
	for _, p := range found {
		if !p.Place.Tenant {
			continue
		}
		if l.cluster.tenants[p.TenantOf] != nil {
			l.problems = append(l.problems, fmt.Errorf("%s: there is a tenant's own document for the same namespace already: %s", p.At, l.cluster.tenants[p.TenantOf].Name))
		}
		l.cluster.tenants[p.TenantOf] = &config.TenantDocument{Name: p.Name, Policy: p.Policy}
	}
}

func (l *loader) readNodes() {
	for _, path := range l.flags.Nodes {
		before, runtimes := len(l.source.Nodes), false
		for _, o := range l.objects([]string{path}, manifest.MaxNodes) {
			if o.Kind != "Node" || o.APIVersion != "v1" {
				runtimes = l.readRuntime(o) || runtimes
				continue
			}
			var node corev1.Node
			if err := json.Unmarshal(o.Raw, &node); err != nil {
				l.problems = append(l.problems, fmt.Errorf("%s: not a Node: %w", o, err))
			}
			l.source.Nodes = append(l.source.Nodes, &node)
		}
		if len(l.source.Nodes) == before && !runtimes && len(l.problems) == 0 {
			l.problems = append(l.problems, fmt.Errorf("--nodes %s: no Node in it; accepted: what kubectl get nodes -o yaml prints", path))
		}
	}
}

// readRuntime reads a RuntimeClass or the GPU Operator's ClusterPolicy, how a guard reaches the driver, or a DeviceClass or
// ResourceSlice. It reports whether the object is one.
func (l *loader) readRuntime(o manifest.Object) bool {
	var err error
	switch {
	case o.Kind == "RuntimeClass" && o.APIVersion == nodev1.SchemeGroupVersion.String():
		class := &nodev1.RuntimeClass{}
		err = json.Unmarshal(o.Raw, class)
		l.classes = append(l.classes, class)
	case o.Kind == "DeviceClass" && o.APIVersion == resourcev1.SchemeGroupVersion.String():
		class := &resourcev1.DeviceClass{}
		err = json.Unmarshal(o.Raw, class)
		keep(&l.cluster.claims.Classes, class.Name, class)
		keep(&l.source.Classes, class.Name, class)
	case o.Kind == "ResourceSlice" && o.APIVersion == resourcev1.SchemeGroupVersion.String():
		published := &resourcev1.ResourceSlice{}
		err = json.Unmarshal(o.Raw, published)
		l.source.Slices = append(l.source.Slices, published)
	case o.Kind == "ClusterPolicy" && o.APIVersion == "nvidia.com/v1":
		var policy *pools.ClusterPolicy
		policy, err = pools.ReadClusterPolicy(o.Raw)
		l.operator = policy.Operator()
	default:
		return false
	}
	if err != nil {
		l.problems = append(l.problems, fmt.Errorf("%s: not a %s: %w", o, o.Kind, err))
	}
	return true
}

func (l *loader) readNamespaces() {
	for _, path := range l.flags.Namespaces {
		if l.addNamespaces(l.objects([]string{path}, manifest.MaxManifest)) == 0 && len(l.problems) == 0 {
			l.problems = append(l.problems, fmt.Errorf("--namespaces %s: no Namespace in it", path))
		}
	}
}

// addNamespaces keeps the labels of the namespaces among objects, and returns how many there are.
func (l *loader) addNamespaces(objects []manifest.Object) (n int) {
	for _, o := range objects {
		if o.Kind == "Namespace" && o.APIVersion == "v1" {
			l.cluster.Labels[o.Name] = o.Labels
			n++
		}
	}
	return n
}

func (l *loader) objects(paths []string, limit int64) []manifest.Object {
	var all []manifest.Object
	for _, d := range l.reader.Documents(paths, limit) {
		found, unread := d.Objects()
		for _, failed := range unread {
			l.problems = append(l.problems, failed)
		}
		all = append(all, found...)
	}
	return all
}
