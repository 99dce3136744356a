package deploy_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/test/markdown"
)

// documents are the YAML documents of a block, or of the files that its commands apply. One that leaves something out ("...") is a picture
// and not a document.
func documents(t *testing.T, b markdown.Block) (all []string) {
	t.Helper()
	for _, path := range b.Files() {
		text, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			t.Errorf("%s: %v", b.Where(), err)
		}
		for _, document := range strings.Split(string(text), "\n---\n") {
			all = append(all, policyOf(document))
		}
	}
	if len(all) > 0 {
		return all
	}
	if language, _, _ := strings.Cut(b.Info, " "); language != "yaml" || strings.Contains(b.Text, "...") {
		return nil
	}
	return strings.Split(b.Text, "\n---\n")
}

// policyOf is the policy in a ConfigMap; other documents stay as they are.
func policyOf(document string) string {
	var c corev1.ConfigMap
	if yaml.Unmarshal([]byte(document), &c) != nil || c.Labels[api.LabelPolicy] != "true" {
		return document
	}
	return c.Data["policy.yaml"]
}

// foreign are API groups whose objects pages show and whose types this project does not link.
func foreign() []string {
	return []string{"kustomize.config.k8s.io", "argoproj.io", "kueue.x-k8s.io", "config.kueue.x-k8s.io", "serving.kserve.io", "kubeflow.org",
		"karpenter.sh", "keda.sh", "ray.io", "kyverno.io", "helm.toolkit.fluxcd.io", "monitoring.coreos.com"}
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
	if head.APIVersion == config.APIVersion {
		k.policies++
		_, problems := config.Parse("page", []byte(document))
		return problems.ToAggregate()
	}
	if group, _, _ := strings.Cut(head.APIVersion, "/"); slices.Contains(foreign(), group) {
		k.foreign++
		return nil
	}
	k.objects++
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	object, _, err := decoder.Decode([]byte(document), nil, nil)
	if configMap, ok := object.(*corev1.ConfigMap); ok && err == nil {
		return errors.Join(problems(configMap)...)
	}
	return err
}

// problems are those of the policy, or of the tenant's own document, that a ConfigMap holds.
func problems(c *corev1.ConfigMap) []error {
	switch {
	case c.Name == api.TenantPolicyName:
		return config.ReadTenantDocument(c).Problems
	case c.Labels[api.LabelPolicy] == "true":
		_, problems := config.ParseConfigMap(c, config.Parse)
		return problems
	}
	return nil
}

// TestPageDocuments reads every YAML document of every page strictly: policies by the policy's own parser.
func TestPageDocuments(t *testing.T) {
	t.Parallel()
	var seen kinds
	for _, p := range pages(t) {
		for _, b := range p.Blocks() {
			for _, document := range documents(t, b) {
				if err := seen.check(document); err != nil {
					t.Errorf("%s: %v", b.Where(), err)
				}
			}
		}
	}
	if seen.policies == 0 || seen.objects == 0 || seen.foreign == 0 || seen.parts == 0 {
		t.Errorf("pages show nothing of some kind, so this test sees too little: %+v", seen)
	}
	for _, bad := range []string{"a: 1\na: 2\n", "apiVersion: gpuslice.dev/v1\nmodes: off\n",
		"apiVersion: v1\nkind: Pod\nspecs: {}\n", "apiVersion: nobody.test/v1\nkind: X\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gpuslice-policy}\ndata: {policy.yaml: \"modes: off\"}\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: any, labels: {gpuslice.dev/policy: \"true\"}}\ndata: {policy.yaml: \"modes: off\"}\n"} {
		if seen.check(bad) == nil {
			t.Errorf("nothing is found wrong with %q", bad)
		}
	}
}
