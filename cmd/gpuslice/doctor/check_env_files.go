package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// The feature by which variables come from files: it is there from one minor version of Kubernetes 1 on, and on by default from another.
const (
	envFilesFeature   = "EnvFiles"
	envFilesFirst     = 34
	envFilesByDefault = 35

	shimEnvFiles = "env-files" // in the policy's spelling
)

// checkEnvFiles holds policies that want variables from files against the API server and the nodes: one that does not know the field
// drops it without a word, and a container loses the image's PYTHONPATH.
func checkEnvFiles(f *Facts) []Finding {
	found := newFinding(Warning, "a policy has PyTorch's shim read a variable from a file, where the feature %s may be off: pods are denied, or lose their image's PYTHONPATH", envFilesFeature)
	unknown := newFinding(Note,
		"a policy has PyTorch's shim read a variable from a file; whether the feature %s is on here is not known", envFilesFeature)
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
		state := envFiles(version, gates)
		if state == featureOff || state == featureAbsent {
			found, lacking = found.With(object, field, cmp.Or(gates, version)), true
		}
		if state == featureAbsent {
			found.Level = Problem
		}
		if state == featureUnknown {
			unknown = unknown.With(object, field, version)
		}
	}
	if f.Version != nil {
		add("version", "gitVersion", f.Version.GitVersion, gatesOfServers(f))
	}
	offered := f.snapshot().Pools()
	inPool := func(n *corev1.Node) bool {
		return slices.ContainsFunc(offered, func(p pools.Pool) bool { return p.HasNode(n.Name) })
	}
	for _, n := range f.Nodes {
		if len(f.offered(n)) > 0 || inPool(n) {
			add(object("node", "", n.Name), "status.nodeInfo.kubeletVersion", n.Status.NodeInfo.KubeletVersion, "")
		}
	}
	remedy := fmt.Sprintf(`set frameworks: {pytorch: {shim: "on"}} in the policy, or turn %s on in API servers and kubelets (Kubernetes 1.%d; on by default from 1.%d)`,
		envFilesFeature, envFilesFirst, envFilesByDefault)
	switch {
	case lacking:
		found.Evidence = append(found.Evidence, unknown.Evidence...)
		return []Finding{found.WithRemedy("%s", remedy)}
	case len(unknown.Evidence) > 0:
		return []Finding{unknown.WithRemedy("where it is off: %s", remedy)}
	}
	return nil
}

// featureState is the state of a feature, if known.
type featureState int

const (
	featureOn featureState = iota
	featureOff
	featureAbsent  // the version does not have it
	featureUnknown // the version has it, off by default, and its gates are not known
)

// envFiles is the state of the feature in a version, with gates where they are known.
func envFiles(version, gates string) featureState {
	_, rest, ok := strings.Cut(version, "1.")
	text, _, _ := strings.Cut(rest, ".")
	minor, err := strconv.Atoi(strings.TrimRight(text, "+"))
	switch {
	case !ok || err != nil:
		return featureOn // nothing is known, and nothing is said
	case minor < envFilesFirst:
		return featureAbsent
	}
	for gate := range strings.SplitSeq(gates, ",") {
		if name, value, _ := strings.Cut(strings.TrimSpace(gate), "="); name == envFilesFeature {
			if value == "true" {
				return featureOn
			}
			return featureOff
		}
	}
	switch {
	case minor >= envFilesByDefault:
		return featureOn
	case gates == "":
		return featureUnknown
	}
	return featureOff
}

// gatesOfServers are the gates of an API server that runs as a pod.
func gatesOfServers(f *Facts) string {
	for _, p := range f.APIServers {
		for _, c := range p.Spec.Containers {
			if gates, ok := installed.Argument(c, "feature-gates"); ok {
				return gates
			}
		}
	}
	return ""
}
