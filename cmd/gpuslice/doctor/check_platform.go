package doctor

import (
	"maps"
	"slices"
	"strings"
)

// hint is a note on clusters with a certain label on their nodes or a certain API group.
type hint struct {
	label, group    string // a prefix of a node's label; the name of an API group or its end
	summary, remedy string
}

// hints lists them. One is added here and nowhere else.
func hints() []hint {
	return []hint{
		{label: "cloud.google.com/gke-",
			summary: "this is GKE: its device plugin shares GPUs by node pool and writes no memory; gpuslice takes that from the accelerator's name, " +
				"and no guard runs in pods of nodes with that plugin",
			remedy: "where nvidia-smi shows another memory, declare the pool in the default policy: deploy/howto/gke.md"},
		{label: "eks.amazonaws.com/",
			summary: "this is EKS: the security group of the nodes has to let the control plane reach port 9443 of the webhook's pods",
			remedy:  "allow TCP 9443 from the cluster's security group to that of the nodes"},
		{label: "kubernetes.azure.com/",
			summary: "this is AKS: it adds a selector of its own to webhook configurations, which GitOps tools see as drift",
			remedy:  "annotate the configurations with admissions.enforcer/disabled: \"true\", or have the GitOps tool ignore namespaceSelector"},
		{group: "karpenter.sh", summary: "Karpenter starts nodes from zero, and does not know the labels of GPU feature discovery",
			remedy: "declare pools in the default policy by labels that the NodePool sets, with scalesFromZero: true"},
		{group: "kueue.x-k8s.io", summary: "Kueue counts what a workload requests before gpuslice has rewritten its pods",
			remedy: "let the ClusterQueue cover the names that pods come out with, for instance by resource transformations"},
		{group: "config.openshift.io",
			summary: "this is OpenShift: its security context constraints decide about the guard too, beside Pod Security",
			remedy:  "kubectl get scc, and let the tenants' ServiceAccounts use one that allows UID 0 with the capability KILL if the guard has to terminate processes"},
		{group: "resource.k8s.io", summary: "dynamic resource allocation is available: strategy claim gives slices of devices whose driver counts their memory, and claims that pods bring stay unchanged"},
	}
}

func checkPlatform(f *Facts) []Finding {
	var all []Finding
	for _, h := range hints() {
		found := newFinding(Note, "%s", h.summary)
		if h.remedy != "" {
			found = found.WithRemedy("%s", h.remedy)
		}
		if h.group != "" && slices.Contains(f.Groups, h.group) {
			all = append(all, found.With("apigroup/"+h.group, "", ""))
		}
		if node, label := labelled(f, h.label); h.label != "" && node != "" {
			all = append(all, found.With(object("node", "", node), "metadata.labels", label))
		}
	}
	return all
}

// labelled is the first node with a label of the prefix.
func labelled(f *Facts, prefix string) (node, label string) {
	for _, n := range f.Nodes {
		for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
			if strings.HasPrefix(key, prefix) {
				return n.Name, key
			}
		}
	}
	return "", ""
}
