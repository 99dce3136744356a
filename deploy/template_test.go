package deploy_test

import (
	"fmt"
	"regexp"
	"strings"
)

// words are what every manifest may say as it is: the chart puts its values there. What else varies is marked in the
// manifest itself.
var words = []struct{ plain, chart string }{
	{"gpuslice/webhook:VERSION", `{{ include "gpuslice.image" (list $ $.Values.image) }}`},
	{"gpuslice/agent:VERSION", `{{ include "gpuslice.image" (list $ $.Values.agent.image) }}`},
	{"gpuslice/guard:VERSION", `{{ include "gpuslice.guardImage" $ }}`},
	{"gpuslice-system", "{{ $.Release.Namespace }}"},
}

// Namespaces that every entry of ours keeps out of, and the cluster's own: policies are looked at in ours too.
const (
	excluded = "[kube-system, kube-public, kube-node-lease, gpuslice-system, gpu-operator, nvidia-device-plugin]"
	clusters = "[kube-system, kube-public, kube-node-lease]"
)

// Lines that mean something.
var (
	markedLine  = regexp.MustCompile(`^(\s*)# chart: (.*)$`)
	markedValue = regexp.MustCompile(`^(\s*(?:- )*[\w./-]+:)( .*)? # chart: (.*)$`)
	markedItem  = regexp.MustCompile(`^(\s*-) .* # chart: (.*)$`)
	labelsLine  = regexp.MustCompile(`^  labels: \{(.*)\}$`)
	client      = regexp.MustCompile(`^  clientConfig:( &\S+)?$`)
)

// template makes a chart's template of a manifest. Of the manifest's comments those that begin with "chart: " are the
// template's own: alone on a line, the text becomes a line of the template; behind a value, it takes the value's place,
// with the lines that belong to it.
func template(name, manifest string) string {
	out := []string{fmt.Sprintf("{{- /* Made of deploy/%s by \"make manifests\": change that. */ -}}", name)}
	lines := strings.Split(strings.TrimSuffix(manifest, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if m := markedLine.FindStringSubmatch(line); m != nil {
			out = append(out, m[1]+m[2])
			continue
		}
		if m := markedItem.FindStringSubmatch(line); m != nil && !markedValue.MatchString(line) {
			out = append(out, m[1]+" "+m[2])
			continue
		}
		if m := markedValue.FindStringSubmatch(line); m != nil {
			out = append(out, m[1]+" "+m[3])
			if m[2] == "" {
				i += below(lines[i+1:], indent(line))
			}
			continue
		}
		out = append(out, plain(line)...)
	}
	return strings.Join(out, "\n") + "\n"
}

// below counts the lines that belong to a key of that indentation.
func below(lines []string, key int) int {
	for n, line := range lines {
		if at := indent(line); at < key || at == key && !strings.HasPrefix(line[at:], "- ") {
			return n
		}
	}
	return len(lines)
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// plain is a line that carries no mark.
func plain(line string) []string {
	line = strings.ReplaceAll(line, "{{", `{{ "{{" }}`)
	if labels := labelsLine.FindStringSubmatch(line); labels != nil {
		return []string{"  labels: {" + labels[1] + `{{ include "gpuslice.labels" $ }}}`}
	}
	if line == "  labels:" {
		return []string{line, `{{- include "gpuslice.labelLines" $ | nindent 4 }}`}
	}
	if client.MatchString(line) {
		return []string{line + `{{ include "gpuslice.caBundle" $ }}`}
	}
	if line == "webhooks:" { // what comes before it is the metadata of a webhook configuration
		return []string{`{{- include "gpuslice.webhookAnnotations" $ }}`, line}
	}
	for plain, chart := range map[string]string{excluded: `{{ include "gpuslice.excluded" $ }}`, clusters: clusters} {
		if before, ok := strings.CutSuffix(line, "values: "+plain); ok {
			selector := fmt.Sprintf("{{- with $.Values.namespaceSelector }}{{ toYaml . | nindent %d }}{{ end }}", indent(line)-2)
			return []string{before + "values: " + chart, selector}
		}
	}
	for _, w := range words {
		line = strings.ReplaceAll(line, w.plain, w.chart)
	}
	return []string{line}
}
