package deploy_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// page is a Markdown file, its path counted from the root of the project.
type page struct{ path, text string }

// pages are all Markdown files of the project.
func pages(t *testing.T) (out []page) {
	t.Helper()
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "bin" || path == "out" || len(path) > 1 && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".md"):
			return nil
		}
		text, err := fs.ReadFile(root, path)
		out = append(out, page{path, string(text)})
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	return out
}

// block is a fenced part of a page.
type block struct {
	page, info, text string
	line             int
}

// where names the block for people.
func (b block) where() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// blocks are the fenced parts of a page, in their order, without the indentation of their fences.
func blocks(p page) (out []block) {
	var open *block
	indent := ""
	for i, line := range strings.Split(p.text, "\n") {
		info, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && open == nil:
			open, indent = &block{page: p.path, info: info, line: i + 1}, line[:len(line)-len(strings.TrimLeft(line, " "))]
		case fence:
			out = append(out, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	return out
}

// documents are the YAML documents of a block. One that leaves something out ("...") is a picture and not a document.
func (b block) documents() []string {
	if language, _, _ := strings.Cut(b.info, " "); language != "yaml" || strings.Contains(b.text, "...") {
		return nil
	}
	return strings.Split(b.text, "\n---\n")
}

// foreign are API groups whose objects pages show and whose types this project does not link.
func foreign() []string {
	return []string{"kustomize.config.k8s.io", "argoproj.io", "kueue.x-k8s.io", "config.kueue.x-k8s.io", "serving.kserve.io", "kubeflow.org",
		"karpenter.sh", "karpenter.k8s.aws", "helm.toolkit.fluxcd.io"}
}

// kinds counts what was checked.
type kinds struct{ policies, objects, foreign, parts int }

// check reads a document as the one who gets it would.
func (k *kinds) check(document string) error {
	var head struct{ APIVersion string }
	if _, err := yaml.YAMLToJSONStrict([]byte(document)); err != nil {
		return err
	}
	if err := yaml.Unmarshal([]byte(document), &head); err != nil || head.APIVersion == "" {
		k.parts++ // a list, or a part of a document
		return nil
	}
	if head.APIVersion == policies.APIVersion {
		k.policies++
		_, problems := policies.ParsePolicy("page", []byte(document))
		return problems.ToAggregate()
	}
	if group, _, _ := strings.Cut(head.APIVersion, "/"); slices.Contains(foreign(), group) {
		k.foreign++
		return nil
	}
	k.objects++
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	object, _, err := decoder.Decode([]byte(document), nil, nil)
	if configMap, ok := object.(*corev1.ConfigMap); ok && err == nil && isPolicy(configMap) {
		_, problems := policies.ParseConfigMap(configMap, policies.ParsePolicy)
		return errors.Join(problems...)
	}
	return err
}

// isPolicy says that a ConfigMap holds a policy, or a tenant's own document.
func isPolicy(c *corev1.ConfigMap) bool {
	return c.Labels[policies.LabelPolicy] == "true" || c.Name == policies.TenantPolicyName
}

// TestWhatPagesShowCanBeApplied reads every YAML document of every page strictly: policies by the policy's own parser.
func TestWhatPagesShowCanBeApplied(t *testing.T) {
	t.Parallel()
	var seen kinds
	for _, p := range pages(t) {
		for _, b := range blocks(p) {
			for _, document := range b.documents() {
				if err := seen.check(document); err != nil {
					t.Errorf("%s: %v", b.where(), err)
				}
			}
		}
	}
	if seen.policies == 0 || seen.objects == 0 || seen.foreign == 0 || seen.parts == 0 {
		t.Errorf("pages show nothing of some kind, so this test sees too little: %+v", seen)
	}
	for _, bad := range []string{"a: 1\na: 2\n", "apiVersion: gpuslice.dev/v1\nmodes: off\n", "apiVersion: v1\nkind: Pod\nspecs: {}\n", "apiVersion: keda.sh/v1\nkind: X\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gpuslice-policy}\ndata: {policy.yaml: \"mode: off\"}\n"} {
		if seen.check(bad) == nil {
			t.Errorf("nothing is found wrong with %q", bad)
		}
	}
}

// TestWhatPagesSayComesOutDoes decides the pods of pages: a block "text tried on NODES" is what becomes of the last pod
// above it, under the last policy above it, on those nodes of test/scenarios.
func TestWhatPagesSayComesOutDoes(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, p := range pages(t) {
		var policy, pod string
		for _, b := range blocks(p) {
			for _, document := range b.documents() {
				switch {
				case strings.Contains(document, "apiVersion: "+policies.APIVersion+"\n"):
					policy = document
				case strings.Contains(document, "kind: Pod\n"):
					pod = document
				}
			}
			nodes, ok := strings.CutPrefix(b.info, "text tried on ")
			if !ok {
				continue
			}
			tried++
			got, err := outcome(policy, pod, strings.Fields(nodes))
			if err != nil {
				t.Errorf("%s: %v", b.where(), err)
			} else if diff := cmp.Diff(b.text, got); diff != "" {
				t.Errorf("%s (-page +what comes out):\n%s", b.where(), diff)
			}
		}
	}
	if tried == 0 {
		t.Error("no page tries anything")
	}
}

// outcome is what becomes of a pod, as pages say it.
func outcome(policy, pod string, names []string) (string, error) {
	parsed, problems := policies.ParsePolicy("gpuslice-system/default", []byte(policy))
	if len(problems) > 0 {
		return "", problems.ToAggregate()
	}
	if slices.Equal(names, []string{"no", "nodes"}) {
		names = nil // declared pools alone
	}
	nodes, err := scenarios.Nodes(names...)
	if err != nil {
		return "", err
	}
	text, err := yaml.YAMLToJSON([]byte(pod))
	if err != nil {
		return "", err
	}
	raw, violation, err := policies.DecodePod(text)
	if err != nil || violation != nil {
		return "", fmt.Errorf("%v %v", err, violation)
	}
	d := policies.Decide(policies.Input{
		Namespace: policies.Namespace{Name: "team-a"}, Policy: parsed, Pod: raw.Pod, Guard: scenarios.Guard(),
		Pools: policies.PoolsFromNodes(nodes, parsed.Pools, nil), PoolsComplete: parsed.Pools.Complete,
	})
	return told(d), nil
}

// told is a decision in a few lines.
func told(d policies.Decision) string {
	var b strings.Builder
	if d.Promise != nil {
		for i, c := range d.Planned.Containers {
			tiers := "none"
			if len(c.Tiers) > 0 {
				tiers = strings.Trim(fmt.Sprint(c.Tiers), "[]")
			}
			fmt.Fprintf(&b, "%s: %s of %s by %s; held by: %s\n", c.Name, c.Memory, d.Promise.Containers[i].Resource, d.Planned.Strategy, tiers)
		}
		for _, note := range d.Planned.Notes {
			fmt.Fprintf(&b, "note: %s\n", note)
		}
	}
	for _, v := range d.Violations {
		fmt.Fprintf(&b, "refused: %s\n", v)
	}
	for _, w := range d.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}
