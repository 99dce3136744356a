package deploy_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/deploy"
)

var update = flag.Bool("update", false, "rewrite what is made of the manifests")

// namespaceManifest is in no chart: Helm makes the namespace that it installs into, or the administrator has.
const namespaceManifest = "10-namespace.yaml"

// TestDerivedFiles compares every file that is generated with what would be generated.
func TestDerivedFiles(t *testing.T) {
	t.Parallel()
	want := derived(t)
	if *update {
		for name, text := range want {
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		have, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[name], string(have)); diff != "" {
			t.Errorf("deploy/%s is not what it is made of says: run \"make manifests\", and commit what that changes (-want +got)\n%s", name, diff)
		}
	}
	generated, err := filepath.Glob("chart/templates/[0-9]*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range generated {
		if _, ok := want[name]; !ok {
			t.Errorf("deploy/%s is made of no manifest: remove it, or name it without a number", name)
		}
	}
}

// policyDefinition is the line of the chart's schema that holds that of policies.
var policyDefinition = regexp.MustCompile(`(?m)^    "policy": \{.*\},$`)

// valuesSchema is the chart's schema with that of policies in it: an installation is the one moment in which no webhook
// denies a broken policy.
func valuesSchema(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("chart/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile("../policies/policy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var policy map[string]any
	if err := json.Unmarshal(schema, &policy); err != nil {
		t.Fatal(err)
	}
	delete(policy, "$schema")
	line, err := json.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	if len(policyDefinition.FindAll(text, -1)) != 1 {
		t.Fatal("chart/values.schema.json has not one line for the schema of policies")
	}
	return policyDefinition.ReplaceAllLiteralString(string(text), `    "policy": `+string(line)+",")
}

// derived is every file that is made of another, by its path.
func derived(t *testing.T) map[string]string {
	t.Helper()
	names, err := fs.Glob(deploy.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{"kustomization.yaml": kustomization(names)}
	for _, name := range names {
		if name != namespaceManifest {
			out["chart/templates/"+name] = template(name, read(t, name))
		}
	}
	maps.Copy(out, observability(t))
	out["chart/values.schema.json"] = valuesSchema(t)
	out["chart/templates/56-certificate.yaml"] = template("certmanager/certificate.yaml",
		"# chart: {{- if eq .Values.certificates.source \"cert-manager\" }}\n"+read(t, "certmanager/certificate.yaml")+"# chart: {{- end }}\n")
	out["chart/templates/57-agent.yaml"] = template("agent/agent.yaml",
		"# chart: {{- if .Values.agent.enabled }}\n"+read(t, "agent/agent.yaml")+"# chart: {{- end }}\n")
	samples, err := fs.Glob(deploy.Files, "60-policies/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := "# chart: {{- if .Values.samplePolicies }}\n"
	for _, name := range samples {
		text += "---\n" + read(t, name)
	}
	out["chart/templates/60-policies.yaml"] = template("60-policies", text+"# chart: {{- end }}\n")
	return out
}

// kustomization is the base: the manifests as they are.
func kustomization(names []string) string {
	return "# Made by \"make manifests\": every manifest beside it.\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- " +
		strings.Join(names, "\n- ") + "\n"
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := deploy.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTemplateOf(t *testing.T) {
	t.Parallel()
	t.Run("marks of a manifest become lines of a template", func(t *testing.T) {
		t.Parallel()
		manifest := `# what the API server {{reads}}
metadata:
  namespace: gpuslice-system
  labels: {a: b}
spec:
  replicas: 3 # chart: {{ .Values.replicas }}
  # chart: {{- if .Values.on }}
  items: # chart: {{- toYaml .Values.items | nindent 2 }}
  - one
  - two
  # chart: {{- end }}
  args:
  - --listen=:9443 # chart: {{ .Values.listen | quote }}
  image: gpuslice/webhook:VERSION
webhooks:
- name: pods
  clientConfig: &service
    service: {port: 443}
  namespaceSelector:
    matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values: [kube-system, kube-public, kube-node-lease, gpuslice-system, gpu-operator, nvidia-device-plugin]
`
		want := `{{- /* Made of deploy/x.yaml by "make manifests": change that. */ -}}
# what the API server {{ "{{" }}reads}}
metadata:
  namespace: {{ $.Release.Namespace }}
  labels: {a: b{{ include "gpuslice.labels" $ }}}
spec:
  replicas: {{ .Values.replicas }}
  {{- if .Values.on }}
  items: {{- toYaml .Values.items | nindent 2 }}
  {{- end }}
  args:
  - {{ .Values.listen | quote }}
  image: {{ include "gpuslice.image" (list $ $.Values.image) }}
{{- include "gpuslice.webhookAnnotations" $ }}
webhooks:
- name: pods
  clientConfig: &service{{ include "gpuslice.caBundle" $ }}
    service: {port: 443}
  namespaceSelector:
    matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values: {{ include "gpuslice.excluded" $ }}
{{- with $.Values.namespaceSelector }}{{ toYaml . | nindent 4 }}{{ end }}
`
		if diff := cmp.Diff(want, template("x.yaml", manifest)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
