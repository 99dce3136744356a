package doctor

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// remedies are those of all rows, by the row's name.
func remedies(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, c := range slices.Concat(rows(t), configuredRows(), certificateRows(t)) {
		for _, f := range examineCluster(facts(t, c.facts...)) {
			if f.Remedy != "" {
				all[c.name] = append(all[c.name], f.Remedy)
			}
		}
	}
	return all
}

// settingOf finds what a text sets, as YAML, as TOML or as a variable.
var settingOf = regexp.MustCompile(`([A-Za-z][A-Za-z_-]+)"?\s*[:=]\s*"?([A-Za-z-]+)`)

// settled are the settings of which doctor and the pages have to say the same. Separators are left out.
var settled = []string{"renamebydefault", "failrequestsgreaterthanone", "deviceliststrategy",
	"acceptnvidiavisibledevicesenvvarwhenunprivileged", "acceptnvidiavisibledevicesasvolumemounts"}

// settingsIn are the values that a text gives to settled settings.
func settingsIn(text string) map[string][]string {
	found := map[string][]string{}
	for _, m := range settingOf.FindAllStringSubmatch(text, -1) {
		name := strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(m[1]))
		if slices.Contains(settled, name) && !slices.Contains(found[name], m[2]) {
			found[name] = append(found[name], m[2])
		}
	}
	return found
}

// TestRemediesAgreeWithPages: what a remedy sets, the pages on the platforms set alike; so neither advises against the
// other.
func TestRemediesAgreeWithPages(t *testing.T) {
	t.Parallel()
	var pages strings.Builder
	howto := os.DirFS("../../../deploy/howto")
	names, err := fs.Glob(howto, "*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("no page: %v", err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(howto, name)
		if err != nil {
			t.Fatal(err)
		}
		pages.Write(text)
	}
	written := settingsIn(pages.String())
	seen := map[string]bool{}
	for name, all := range remedies(t) {
		for setting, values := range settingsIn(strings.Join(all, "\n")) {
			seen[setting] = true
			for _, v := range values {
				if have := written[setting]; !slices.Equal(have, []string{v}) {
					t.Errorf("%s: the remedy sets %s to %s, the pages to %q", name, setting, v, have)
				}
			}
		}
	}
	for _, setting := range settled[:3] {
		if !seen[setting] {
			t.Errorf("no remedy sets %s: the test holds nothing", setting)
		}
	}
}

// TestRemediesOfInstallation: an installation is restored by what it was installed with, and with values that the chart has.
func TestRemediesOfInstallation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../deploy/chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	set := regexp.MustCompile(`helm (?:install|upgrade) (?:gpuslice|our-release) deploy/chart.*`)
	assigned := regexp.MustCompile(`--set ([A-Za-z.]+)=`)
	commands := 0
	for name, all := range remedies(t) {
		for _, remedy := range all {
			if strings.Contains(remedy, "apply -f") {
				t.Errorf("%s: %q applies files whose images are nobody's", name, remedy)
			}
			for _, command := range set.FindAllString(remedy, -1) {
				commands++
				for _, m := range assigned.FindAllStringSubmatch(command, -1) {
					if !hasValue(values, strings.Split(m[1], ".")) {
						t.Errorf("%s: the chart has no value %s", name, m[1])
					}
				}
			}
		}
	}
	if commands == 0 {
		t.Error("no remedy names the chart: the test holds nothing")
	}
}

func hasValue(values map[string]any, path []string) bool {
	v, ok := values[path[0]]
	if below, deeper := v.(map[string]any); deeper && len(path) > 1 {
		return hasValue(below, path[1:])
	}
	return ok && len(path) == 1
}

func TestReinstall(t *testing.T) {
	t.Parallel()
	managed := func(_ *testing.T, f *Facts) {
		f.Deployment.Labels["app.kubernetes.io/managed-by"] = "Helm"
		f.Deployment.Annotations = map[string]string{annotationRelease: "our-release"}
	}
	for _, c := range []struct {
		name  string
		facts []change
		want  string
	}{
		{"nothing installed", nil, "helm install gpuslice deploy/chart "},
		{"by Helm", []change{installedWith(3, nil), managed},
			"helm upgrade our-release deploy/chart --namespace gpuslice-system --reset-then-reuse-values"},
		{"by kustomize", []change{installedWith(3, nil)}, "kubectl apply --server-side -k OVERLAY"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := facts(t, c.facts...).reinstall(); !strings.HasPrefix(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
