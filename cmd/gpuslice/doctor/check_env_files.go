package doctor

import (
	"cmp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The feature by which variables come from files: it is there from one minor version of Kubernetes 1 on, and on by default from another.
const (
	envFilesFeature   = "EnvFiles"
	envFilesFirst     = 34
	envFilesByDefault = 35

	shimEnvFiles = "env-files" // as policy says it
)

// checkEnvFiles holds policies that want variables from files against the API server and the nodes: one that does not know the field
// drops it without a word, and a container loses the image's PYTHONPATH.
func checkEnvFiles(f *Facts) []Finding {
	found := newFinding(Warning, "a policy has PyTorch's shim read a variable from a file, where the feature %s may be off: pods are denied, or lose their image's PYTHONPATH", envFilesFeature)
	seen, lacking := map[string]bool{}, false
	for _, g := range f.Governed() {
		if p := g.Input.Policy; p.Frameworks["pytorch"].Shim == shimEnvFiles && !seen[p.Name] {
			seen[p.Name] = true
			found = found.With("policy/"+p.Name, "frameworks.pytorch.shim", shimEnvFiles)
		}
	}
	if len(seen) == 0 {
		return nil
	}
	add := func(object, field, version, gates string) {
		on, exists := envFiles(version, gates)
		if !on {
			found, lacking = found.With(object, field, cmp.Or(gates, version)), true
		}
		if !exists {
			found.Level = Problem
		}
	}
	if f.Version != nil {
		add("version", "gitVersion", f.Version.GitVersion, gatesOfServers(f))
	}
	for _, n := range f.Nodes {
		if hasGPUs(n) {
			add(object("node", "", n.Name), "status.nodeInfo.kubeletVersion", n.Status.NodeInfo.KubeletVersion, "")
		}
	}
	if !lacking {
		return nil
	}
	return []Finding{found.WithRemedy("set frameworks: {pytorch: {shim: \"on\"}} in the policy, or turn %s on in API servers and kubelets (Kubernetes 1.%d; on by default from 1.%d)", envFilesFeature, envFilesFirst, envFilesByDefault)}
}

// envFiles reports whether the feature is on in a version, with gates where they are known, and whether the version has it.
func envFiles(version, gates string) (on, exists bool) {
	_, rest, ok := strings.Cut(version, "1.")
	text, _, _ := strings.Cut(rest, ".")
	minor, err := strconv.Atoi(strings.TrimRight(text, "+"))
	if !ok || err != nil {
		return true, true // nothing is known, and nothing is said
	}
	on = minor >= envFilesByDefault
	for gate := range strings.SplitSeq(gates, ",") {
		if name, value, _ := strings.Cut(strings.TrimSpace(gate), "="); name == envFilesFeature {
			on = value == "true"
		}
	}
	return on && minor >= envFilesFirst, minor >= envFilesFirst
}

// gatesOfServers are the gates of an API server that runs as a pod.
func gatesOfServers(f *Facts) string {
	for _, p := range f.APIServers {
		for _, c := range p.Spec.Containers {
			if gates, ok := flagOf(c, "feature-gates"); ok {
				return gates
			}
		}
	}
	return ""
}

// hasGPUs reports whether a node offers a resource of NVIDIA's.
func hasGPUs(n *corev1.Node) bool {
	for name := range n.Status.Allocatable {
		if strings.HasPrefix(string(name), "nvidia.com/") {
			return true
		}
	}
	return false
}
