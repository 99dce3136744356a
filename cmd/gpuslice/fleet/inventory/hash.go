package inventory

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// publicDomains are those of label keys, taint keys and resources that name no person, team or machine. Subdomains count, too.
var publicDomains = []string{"kubernetes.io", "k8s.io", "nvidia.com", "gpuslice.dev",
	"cloud.google.com", "amazonaws.com", "azure.com", "karpenter.sh", "run.ai", "volcano.sh"}

// publicValues are keys whose values name a kind of thing.
var publicValues = []string{"kubernetes.io/os", "kubernetes.io/arch", "node.kubernetes.io/instance-type",
	"topology.kubernetes.io/zone", "topology.kubernetes.io/region",
	"karpenter.sh/capacity-type", "cloud.google.com/gke-accelerator", "node-role.kubernetes.io/control-plane",
	api.LabelMemory, api.LabelMemoryLimit, api.LabelFraction, api.LabelCompute, api.LabelShare, api.LabelStrategy, api.LabelTier}

// hasher replaces names by keyed hashes: the same name has the same hash within one Fleet.
type hasher struct{ key []byte }

// HashNames replaces in f the names of nodes, pools, device classes, namespaces, pods, containers, controllers, schedulers, budgets and
// devices, label and taint keys outside of known domains, and label values but those that describe hardware. It leaves out sentences that
// may name any of these. Who has key (at least 16 random bytes, to be forgotten) can try names until one fits.
func (f *Fleet) HashNames(key []byte) {
	h := hasher{key}
	f.Hashed, f.Unread, f.Notes = true, nil, nil
	for i := range f.Pools {
		p := &f.Pools[i]
		p.Name, p.Class, p.Resource = h.name(p.Name), h.domain(p.Class), h.resource(p.Resource)
	}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		n.Name, n.Labels = h.name(n.Name), h.labels(n.Labels)
		for j := range n.Taints {
			t := &n.Taints[j]
			t.Key, t.Value = h.labelKey(t.Key), h.value(t.Key, t.Value)
		}
		n.Allocatable, n.Others = h.resources(n.Allocatable), h.resources(n.Others)
		for j := range n.Offers {
			n.Offers[j].Pool = h.name(n.Offers[j].Pool)
		}
	}
	for i := range f.Pods {
		h.pod(&f.Pods[i])
	}
	for i := range f.Quotas {
		h.quota(&f.Quotas[i])
	}
	f.Sort()
}

// name is the hash of a name; "": there is none.
func (h hasher) name(text string) string {
	if text == "" {
		return ""
	}
	sum := hmac.New(sha256.New, h.key)
	sum.Write([]byte(text))
	return "x" + hex.EncodeToString(sum.Sum(nil)[:8])
}

// labelKey is a label's key, or its hash.
func (h hasher) labelKey(key string) string {
	if domain, _, qualified := strings.Cut(key, "/"); qualified && public(domain) {
		return key
	}
	return h.name(key)
}

// domain is a name such as that of a DeviceClass, or its hash.
func (h hasher) domain(name string) string {
	if public(name) {
		return name
	}
	return h.name(name)
}

func public(domain string) bool {
	return slices.ContainsFunc(publicDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

// replace replaces each of the names.
func replace(names []string, by func(string) string) {
	for i := range names {
		names[i] = by(names[i])
	}
}

// value is a label's value, or its hash.
func (h hasher) value(key, value string) string {
	if slices.Contains(publicValues, key) || strings.HasPrefix(key, "nvidia.com/") {
		return value
	}
	return h.name(value)
}

func (h hasher) labels(all map[string]string) map[string]string {
	out := make(map[string]string, len(all))
	for key, value := range all {
		out[h.labelKey(key)] = h.value(key, value)
	}
	return out
}

func (h hasher) resources(all Resources) Resources {
	out := make(Resources, len(all))
	for name, n := range all {
		out[h.resource(name)] += n
	}
	return out
}

func (h hasher) resource(name string) string {
	if class, of := strings.CutPrefix(name, resourcev1.ResourceDeviceClassPrefix); of {
		return resourcev1.ResourceDeviceClassPrefix + h.domain(class)
	}
	if strings.Contains(name, "/") {
		return h.labelKey(name)
	}
	return name
}

func (h hasher) pod(p *Pod) {
	p.Namespace, p.Name, p.Node, p.Owner.Name = h.name(p.Namespace), h.name(p.Name), h.name(p.Node), h.name(p.Owner.Name)
	p.Labels, p.NodeSelector, p.Requests = h.labels(p.Labels), h.labels(p.NodeSelector), h.resources(p.Requests)
	p.Waiting = ""
	if p.SchedulerName != corev1.DefaultSchedulerName {
		p.SchedulerName = h.name(p.SchedulerName)
	}
	for i := range p.Tolerations {
		t := &p.Tolerations[i]
		t.Key, t.Value = h.labelKey(t.Key), h.value(t.Key, t.Value)
	}
	for i := range p.Spread {
		p.Spread[i].TopologyKey = h.labelKey(p.Spread[i].TopologyKey)
		p.Spread[i].LabelSelector = h.selector(p.Spread[i].LabelSelector)
		replace(p.Spread[i].MatchLabelKeys, h.labelKey)
	}
	for i := range p.Slices {
		s := &p.Slices[i]
		s.Container, s.Pool, s.Resource = h.name(s.Container), h.name(s.Pool), h.resource(s.Resource)
		for j := range s.Usage {
			s.Usage[j].Device = h.name(s.Usage[j].Device)
		}
	}
	h.affinity(p.Affinity)
}

func (h hasher) affinity(a *corev1.Affinity) {
	if a == nil {
		return
	}
	if n := a.NodeAffinity; n != nil {
		if required := n.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			for i := range required.NodeSelectorTerms {
				h.term(&required.NodeSelectorTerms[i])
			}
		}
		for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			h.term(&n.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
		}
	}
	if p := a.PodAffinity; p != nil {
		h.podTerms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		h.podTerms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (h hasher) term(t *corev1.NodeSelectorTerm) {
	h.requirements(t.MatchExpressions)
	h.requirements(t.MatchFields)
}

// requirements keeps numbers, which are compared, and the one field that a term can name.
func (h hasher) requirements(all []corev1.NodeSelectorRequirement) {
	for i := range all {
		r := &all[i]
		if r.Operator != corev1.NodeSelectorOpGt && r.Operator != corev1.NodeSelectorOpLt {
			replace(r.Values, func(value string) string { return h.value(r.Key, value) })
		}
		if r.Key != metav1.ObjectNameField {
			r.Key = h.labelKey(r.Key)
		}
	}
}

func (h hasher) podTerms(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	one := func(t *corev1.PodAffinityTerm) {
		t.TopologyKey = h.labelKey(t.TopologyKey)
		t.LabelSelector, t.NamespaceSelector = h.selector(t.LabelSelector), h.selector(t.NamespaceSelector)
		replace(t.Namespaces, h.name)
		replace(t.MatchLabelKeys, h.labelKey)
		replace(t.MismatchLabelKeys, h.labelKey)
	}
	for i := range required {
		one(&required[i])
	}
	for i := range preferred {
		one(&preferred[i].PodAffinityTerm)
	}
}

func (h hasher) selector(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return nil
	}
	if s.MatchLabels != nil {
		s.MatchLabels = h.labels(s.MatchLabels)
	}
	for i := range s.MatchExpressions {
		e := &s.MatchExpressions[i]
		replace(e.Values, func(value string) string { return h.value(e.Key, value) })
		e.Key = h.labelKey(e.Key)
	}
	return s
}

// quota keeps whether a budget is a namespace's or shared.
func (h hasher) quota(q *Quota) {
	kind, name, _ := strings.Cut(q.Budget, "/")
	q.Budget = fmt.Sprintf("%s/%s", kind, h.name(name))
	replace(q.Namespaces, h.name)
	for i := range q.Figures {
		f := &q.Figures[i]
		f.Quota, f.Namespace = h.name(f.Quota), h.name(f.Namespace)
		if pool, of := strings.CutPrefix(f.Part, "pool/"); of {
			f.Part = "pool/" + h.name(pool)
		}
	}
}
