package scenarios

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies"
)

// PodYAML is a pod as want/pod.diff compares it: without the annotations written for machines, with the guard's containers
// by name alone (want/guard.yaml shows what they carry), and compact. Nothing else is left out or reordered but names.
func PodYAML(tree map[string]any) (string, error) {
	b, err := json.Marshal(tree)
	if err != nil {
		return "", err
	}
	var copied map[string]any
	if err := json.Unmarshal(b, &copied); err != nil {
		return "", err
	}
	if metadata, ok := copied["metadata"].(map[string]any); ok {
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			delete(annotations, policies.AnnotationPromise)
			delete(annotations, policies.AnnotationPlanned)
			if len(annotations) == 0 {
				delete(metadata, "annotations")
			}
		}
	}
	if spec, ok := copied["spec"].(map[string]any); ok {
		if list, ok := spec["initContainers"].([]any); ok {
			spec["initContainers"] = guardByName(list)
		}
	}
	out, err := yaml.Marshal(copied)
	if err != nil {
		return "", err
	}
	return compact(out)
}

func guardByName(list []any) []any {
	for i, e := range list {
		if c, ok := e.(map[string]any); ok && (c["name"] == limits.CheckContainer || c["name"] == limits.GuardContainer) {
			list[i] = map[string]any{"name": c["name"]}
		}
	}
	return list
}

// maxFlow is how long a list, or a mapping that is compacted, may be on one line.
const maxFlow = 100

// compact writes environment variables, mounts, selector terms and resources on one line each, and a name first: as most
// authors do, and since the node selector written out would be most of what a case wants.
func compact(text []byte) (string, error) {
	var doc yamlv3.Node
	if err := yamlv3.Unmarshal(text, &doc); err != nil {
		return "", err
	}
	shorten(&doc, false)
	var b bytes.Buffer
	e := yamlv3.NewEncoder(&b)
	e.SetIndent(2)
	e.CompactSeqIndent()
	err := e.Encode(&doc)
	return b.String(), err
}

// shorten compacts a node; inline reports whether it may stand on one line although it is a mapping.
func shorten(n *yamlv3.Node, inline bool) {
	if inline && n.Kind == yamlv3.MappingNode {
		nameFirst(n)
	}
	if (inline || n.Kind == yamlv3.SequenceNode) && width(n, 2) <= maxFlow {
		n.Style = yamlv3.FlowStyle
		return
	}
	key := ""
	for i, c := range n.Content {
		if n.Kind == yamlv3.MappingNode && i%2 == 0 {
			key = c.Value
			continue
		}
		shorten(c, n.Kind == yamlv3.SequenceNode || key == "limits" || key == "requests")
	}
}

func nameFirst(n *yamlv3.Node) {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == "name" {
			pair := slices.Clone(n.Content[i : i+2])
			n.Content = append(pair, slices.Delete(n.Content, i, i+2)...)
			return
		}
	}
}

// width is about how long a node is on one line; more than maxFlow where it is nested too deep or has a text of lines.
func width(n *yamlv3.Node, depth int) int {
	switch {
	case n.Kind == yamlv3.ScalarNode && strings.Contains(n.Value, "\n"):
		return maxFlow + 1
	case n.Kind == yamlv3.ScalarNode:
		return len(n.Value) + len(", ")
	case depth == 0 || n.Kind == yamlv3.SequenceNode && slices.ContainsFunc(n.Content, isMapping):
		return maxFlow + 1
	}
	sum := len("{}")
	for _, c := range n.Content {
		sum += width(c, depth-1)
	}
	return sum
}

func isMapping(n *yamlv3.Node) bool { return n.Kind == yamlv3.MappingNode }
