package deploy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
)

// TestFilesToApply reads the files of the platform pages and recipes strictly. A page applies each of them.
func TestFilesToApply(t *testing.T) {
	t.Parallel()
	applied := map[string]bool{}
	for _, p := range pages(t) {
		for _, b := range p.Blocks() {
			for _, file := range b.Files() {
				applied[file] = true
			}
		}
	}
	var files []string
	for _, pattern := range []string{"howto/policies/*.yaml", "recipes/first-slice/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: no file: %v", pattern, err)
		}
		files = append(files, found...)
	}
	var seen kinds
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !applied["deploy/"+name] {
			t.Errorf("deploy/%s: no page applies it", name)
		}
		for _, document := range strings.Split(string(text), "\n---\n") {
			if err := seen.check(document); err != nil {
				t.Errorf("deploy/%s: %v", name, err)
			}
			var c corev1.ConfigMap
			if err := yaml.Unmarshal([]byte(document), &c); err == nil && c.Kind == "ConfigMap" &&
				(c.Namespace != api.SystemNamespace || c.Labels[api.LabelPolicy] != "true") {
				t.Errorf("deploy/%s: %s is no policy of the installation", name, c.Name)
			}
		}
	}
}
