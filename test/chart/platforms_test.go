package chart

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
)

// platform is a file of values for one, and its page.
type platform struct {
	name, file, text, page string
	values                 map[string]any
}

func platforms(t *testing.T) (all []platform) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chartFolder, "values-*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		p := platform{file: path, text: string(file(t, path))}
		p.name = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "values-"), ".yaml")
		p.page = string(file(t, filepath.Join("../../deploy/howto", p.name+".md")))
		if err := yaml.UnmarshalStrict([]byte(p.text), &p.values); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, p)
	}
	return all
}

func TestPlatformValues(t *testing.T) {
	t.Parallel()
	all := platforms(t)
	names := make([]string, 0, len(all))
	for _, p := range all {
		names = append(names, p.name)
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.matchesPage(t)
			p.changes(t)
			newHelm(t, "").render(version("v1"), "--values="+p.file) // which compares the values with the schema
		})
	}
	if want := []string{"aks", "eks", "gke", "gpu-operator", "openshift"}; !slices.Equal(names, want) {
		t.Errorf("there are values for %q, want %q", names, want)
	}
}

// untested finds the line of a page that nobody ran on its platform.
var untested = regexp.MustCompile(`(?m)^- Not tested on (\w+)\.$`)

// matchesPage holds a file and its page against each other: each names the other, and both or neither report a run.
func (p platform) matchesPage(t *testing.T) {
	t.Helper()
	banner, _, _ := strings.Cut(p.text, "\n")
	if link := "(../chart/" + filepath.Base(p.file) + ")"; !strings.Contains(p.page, link) {
		t.Errorf("howto/%s.md does not link %s", p.name, link)
	}
	if !strings.Contains(banner, "deploy/howto/"+p.name+".md.") {
		t.Errorf("%s does not name its page", p.file)
	}
	if found := untested.FindStringSubmatch(p.page); found != nil && !strings.HasSuffix(banner, "Not run on "+found[1]+".") {
		t.Errorf("the page has %q, and %s begins with %q", found[0], p.file, banner)
	}
}

// changes reports values that are the chart's own: a file for a platform has what differs.
func (p platform) changes(t *testing.T) {
	t.Helper()
	var defaults map[string]any
	if err := yaml.Unmarshal(file(t, filepath.Join(chartFolder, "values.yaml")), &defaults); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths(nil, p.values) {
		value, _ := at(p.values, path)
		if usual, ok := at(defaults, path); ok && reflect.DeepEqual(value, usual) {
			t.Errorf("%s: %s is the chart's default", p.file, strings.Join(path, "."))
		}
	}
}

// platformNamed returns the values of one.
func platformNamed(t *testing.T, name string) platform {
	t.Helper()
	for _, p := range platforms(t) {
		if p.name == name {
			return p
		}
	}
	t.Fatalf("there are no values for %s", name)
	return platform{}
}

// TestPlatformPorts: the port that a page names is the one that the Service leads to and the policy lets in.
func TestPlatformPorts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gke", "eks"} {
		p := platformNamed(t, name)
		port, _ := at(p.values, []string{"ports", "https"})
		if words := strings.Join(strings.Fields(p.page), " "); !strings.Contains(words, fmt.Sprintf("serves on port %v,", port)) {
			t.Errorf("howto/%s.md does not name port %v", name, port)
		}
		c := deploymentIn(t, newHelm(t, "").render(version("v1"), "--values="+p.file)).Containers[0]
		if got := c.Ports[0].ContainerPort; fmt.Sprint(got) != fmt.Sprint(port) || !slices.Contains(c.Args, fmt.Sprintf("--listen=:%v", port)) {
			t.Errorf("%s: the webhook listens with %q, its port is %d", name, c.Args, got)
		}
	}
}

// TestAKSValues: the page's snippet is the file.
func TestAKSValues(t *testing.T) {
	t.Parallel()
	p := platformNamed(t, "aks")
	_, rest, _ := strings.Cut(p.page, "values-aks.yaml")
	_, rest, _ = strings.Cut(rest, "```yaml\n")
	snippet, _, _ := strings.Cut(rest, "```")
	var shown map[string]any
	if err := yaml.Unmarshal([]byte(snippet), &shown); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.values, shown); diff != "" {
		t.Errorf("(-file +page)\n%s", diff)
	}
	for _, o := range newHelm(t, "").render(version("v1"), "--values="+p.file) {
		if strings.HasSuffix(o.GetKind(), "WebhookConfiguration") &&
			(o.GetAnnotations()["admissions.enforcer/disabled"] != "true" || o.GetLabels()["admissions.enforcer/disabled"] != "true") {
			t.Errorf("%s %s: labels %v, annotations %v", o.GetKind(), o.GetName(), o.GetLabels(), o.GetAnnotations())
		}
	}
}

// TestOpenShiftValues: each ServiceAccount that runs pods may use the SCC that its pods need.
func TestOpenShiftValues(t *testing.T) {
	t.Parallel()
	p, h := platformNamed(t, "openshift"), newHelm(t, "")
	for _, tt := range []struct {
		set  string
		want map[string]any
	}{
		{"agent.enabled=false", map[string]any{"gpuslice-webhook": "nonroot-v2"}},
		{"agent.enabled=true", map[string]any{"gpuslice-webhook": "nonroot-v2", "gpuslice-agent": "privileged"}},
		{"hostNetwork=true", map[string]any{"gpuslice-webhook": "privileged"}},
	} {
		objects := h.render(version("v1"), "--values="+p.file, "--set="+tt.set)
		got, accounts := map[string]any{}, map[string]any{}
		for _, o := range objects {
			role, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
			subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
			if scc, ok := strings.CutPrefix(role, "system:openshift:scc:"); ok &&
				o.GetKind() == "RoleBinding" && o.GetNamespace() == api.SystemNamespace {
				got[subjects[0].(map[string]any)["name"].(string)] = scc
			}
			if account, _, _ := unstructured.NestedString(o.Object, "spec", "template", "spec", "serviceAccountName"); account != "" {
				accounts[account] = tt.want[account]
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.set, diff)
		}
		if diff := cmp.Diff(accounts, got); diff != "" {
			t.Errorf("%s: a ServiceAccount has pods and no SCC (-has pods +may)\n%s", tt.set, diff)
		}
	}
	for _, namespace := range p.values["excludedNamespaces"].([]any) {
		if !strings.Contains(p.page, "`"+namespace.(string)+"`") {
			t.Errorf("howto/openshift.md does not name the namespace %s", namespace)
		}
	}
}
