package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/cluster"
)

// cluster is what files or a live cluster say: policies, pools and namespaces.
type cluster struct {
	book       config.Book
	tenants    map[string]*config.TenantDocument // by namespace; under "": of each that has none of its own
	snapshot   *webhookcluster.Snapshot          // where policies come from a live cluster, in the place of book
	namespace  string                            // of objects that name none
	pools      []pools.Pool
	complete   bool
	namespaces map[string]map[string]string // name -> labels
	extra      map[string]string            // labels of every namespace, from flags
	guard      *config.GuardSettings
}

// input is what a decision about a pod of the namespace depends on, the pod itself left out.
func (c *cluster) input(namespace string) policies.Input {
	ns := namespaceOf(namespace, c.namespaces[namespace])
	maps.Copy(ns.Labels, c.extra)
	var in policies.Input
	if c.snapshot != nil {
		in = c.snapshot.Input(ns)
	} else {
		policy, err := c.book.For(ns)
		in = policies.Input{Namespace: ns, Policy: policy, PolicyError: err, Pools: c.pools, PoolsComplete: c.complete, Guard: c.guard}
	}
	return in.Tightened(cmp.Or(c.tenants[namespace], c.tenants[""]))
}

// clusterLoader reads a cluster from the files that the flags name, and the rest from a live one where they want it.
type clusterLoader struct {
	flags    *clusterFlags
	live     *live // nil: files alone
	reader   *reader
	problems []error
	warnings []string
	policies []policyDocument
	nodes    []*corev1.Node
	cluster  *cluster
}

// loadCluster reads all that the flags name, and says every problem on standard error. Any ends the command: an answer
// from half a cluster would be a wrong one.
func loadCluster(ctx context.Context, flags *clusterFlags, r *reader, out io.Writer) (*cluster, error) {
	l := clusterLoader{flags: flags, reader: r, cluster: &cluster{
		namespaces: map[string]map[string]string{}, tenants: map[string]*config.TenantDocument{},
	}}
	if flags.live() {
		connection, err := connect(&flags.kube, out)
		if err != nil {
			return nil, err
		}
		l.cluster.namespace = connection.Namespace
		if l.live, err = askLive(ctx, connection, flags); err != nil {
			return nil, err
		}
		l.takeLive()
	}
	l.labels()
	l.readPolicies()
	l.readNodes()
	l.readNamespaces()
	for _, w := range l.warnings {
		fmt.Fprintln(out, w)
	}
	for _, problem := range l.problems {
		fmt.Fprintln(out, problem)
	}
	if len(l.problems) > 0 {
		return nil, exitError(exitInput)
	}
	l.settle()
	return l.cluster, nil
}

// takeLive takes what a live cluster said. Files are read after it, and win.
func (l *clusterLoader) takeLive() {
	l.nodes = l.live.nodes
	l.warnings = append(l.warnings, l.live.warnings...)
	for name, labels := range l.live.namespaces {
		l.cluster.namespaces[name] = labels
	}
}

// takeTenants takes the tenants' own documents of a live cluster, where no file gives one.
func (l *clusterLoader) takeTenants() {
	if l.cluster.tenants[""] != nil {
		return
	}
	for _, m := range l.live.tenants {
		if place, _ := config.PlaceOf(m, l.flags.systemNamespace); place == config.PlaceTenant && l.cluster.tenants[m.Namespace] == nil {
			document := config.ReadTenantDocument(m)
			l.cluster.tenants[m.Namespace] = &document
		}
	}
}

// settle makes the cluster of what was read.
func (l *clusterLoader) settle() {
	c := l.cluster
	if image := l.flags.guardImage; image != "" {
		c.guard = &config.GuardSettings{Image: image, CPU: guardCPU, Memory: guardMemory}
	} else if l.live != nil {
		c.guard = l.live.guard
	}
	if l.live != nil {
		l.takeTenants()
	}
	if l.live != nil && len(l.flags.policies) == 0 {
		c.snapshot = webhookcluster.ReadSnapshot(webhookcluster.Objects{Policies: l.live.policies, State: l.live.state, Nodes: l.nodes, Guard: c.guard})
		c.pools = c.snapshot.Pools()
		return
	}
	c.book = config.NewBook(governing(l.policies))
	spec := config.PoolsSpec{}
	if policy := c.book.Default(); policy != nil {
		spec = policy.Pools
	}
	c.pools, c.complete = pools.FromNodes(l.nodes, spec, nil), spec.Complete
}

// labels reads --namespace-label.
func (l *clusterLoader) labels() {
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

func (l *clusterLoader) readPolicies() {
	for _, path := range l.flags.policies {
		l.readPolicyFile("--policies", path, policyReader{system: l.flags.systemNamespace})
	}
	for _, path := range l.flags.tenantPolicies {
		l.readPolicyFile("--tenant-policy", path, policyReader{system: l.flags.systemNamespace, tenants: true})
	}
}

func (l *clusterLoader) readPolicyFile(flag, path string, as policyReader) {
	found, others := readPolicies(l.reader, []string{path}, as)
	for _, p := range found {
		for _, problem := range p.problems {
			l.problems = append(l.problems, fmt.Errorf("%s: %w", p.at, problem))
		}
		for _, w := range p.warnings {
			l.warnings = append(l.warnings, p.at+": "+w)
		}
	}
	for _, failed := range others.unread {
		l.problems = append(l.problems, failed)
	}
	namespaces := l.addNamespaces(others.objects)
	if len(found) == 0 && namespaces == 0 && len(others.unread) == 0 {
		l.problems = append(l.problems, fmt.Errorf("%s %s: no policy in it; %s", flag, path, acceptedPolicies))
	}
	l.policies = append(l.policies, found...)
	for _, p := range found {
		if p.place != config.PlaceTenant {
			continue
		}
		if l.cluster.tenants[p.tenantOf] != nil {
			l.problems = append(l.problems, fmt.Errorf("%s: there is a tenant's own document for the same namespace already: %s", p.at, l.cluster.tenants[p.tenantOf].Name))
		}
		l.cluster.tenants[p.tenantOf] = &config.TenantDocument{Name: p.name, Policy: p.policy}
	}
}

func (l *clusterLoader) readNodes() {
	for _, path := range l.flags.nodes {
		before := len(l.nodes)
		for _, o := range l.objects([]string{path}, maxNodes) {
			if o.kind != "Node" || o.apiVersion != "v1" {
				continue
			}
			var node corev1.Node
			if err := json.Unmarshal(o.raw, &node); err != nil {
				l.problems = append(l.problems, fmt.Errorf("%s: it is no node: %w", o, err))
			}
			l.nodes = append(l.nodes, &node)
		}
		if len(l.nodes) == before && len(l.problems) == 0 {
			l.problems = append(l.problems, fmt.Errorf("--nodes %s: no Node in it; accepted: what kubectl get nodes -o yaml prints", path))
		}
	}
}

func (l *clusterLoader) readNamespaces() {
	for _, path := range l.flags.namespaces {
		if l.addNamespaces(l.objects([]string{path}, maxManifest)) == 0 && len(l.problems) == 0 {
			l.problems = append(l.problems, fmt.Errorf("--namespaces %s: no Namespace in it", path))
		}
	}
}

// addNamespaces keeps the labels of the namespaces among objects, and says how many there are.
func (l *clusterLoader) addNamespaces(objects []object) (n int) {
	for _, o := range objects {
		if o.kind == "Namespace" && o.apiVersion == "v1" {
			l.cluster.namespaces[o.name] = o.labels
			n++
		}
	}
	return n
}

func (l *clusterLoader) objects(paths []string, limit int64) []object {
	var all []object
	for _, d := range l.reader.documents(paths, limit) {
		found, unread := d.objects()
		for _, failed := range unread {
			l.problems = append(l.problems, failed)
		}
		all = append(all, found...)
	}
	return all
}
