package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

// tested are the modules from which the tests build each program, and the folders of test/cluster/modules that require them.
var tested = map[string]struct {
	module  string
	folders []string
}{
	"Kubernetes":                 {"k8s.io/kubernetes", []string{"kubernetes-oldest", "kubernetes", "kubernetes-newest"}},
	"Helm":                       {"helm.sh/helm/v[34]", []string{"helm-oldest", "helm-3", "helm"}},
	"containerd":                 {"github.com/containerd/containerd/v2", []string{"containerd"}},
	"NVIDIA's device plugin":     {"github.com/NVIDIA/k8s-device-plugin", []string{"nvidia", "nvidia-newest"}},
	"NVIDIA's DRA driver":        {"sigs.k8s.io/dra-driver-nvidia-gpu", []string{"nvidia-dra"}},
	"NVIDIA's container toolkit": {"github.com/NVIDIA/nvidia-container-toolkit", []string{"toolkit"}},
	"cert-manager":               {"github.com/cert-manager/cert-manager", []string{"certmanager"}},
}

// versions are those that the folders require of a module, in ascending order.
func versions(t *testing.T, module string, folders []string) (out []string) {
	t.Helper()
	required := regexp.MustCompile(`(?m)^\s*(?:require )?` + module + ` (v\S+)`)
	for _, folder := range folders {
		text, err := os.ReadFile(filepath.Join("../test/cluster/modules", folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		m := required.FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s requires no %s", folder, module)
		}
		out = append(out, string(m[1]))
	}
	if !slices.IsSortedFunc(out, compared) {
		t.Errorf("%s: %q are not in ascending order", module, out)
	}
	return out
}

func compared(a, b string) int {
	order, err := version.MustParseSemantic(a).Compare(b)
	if err != nil {
		panic(err)
	}
	return order
}

// TestSupportedVersions holds the table of README.md against what the tests build, and the chart against its oldest rows.
func TestSupportedVersions(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| | tested |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]string{}
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		rows[strings.TrimSpace(cells[1])] = strings.TrimSpace(cells[2])
	}
	oldest := map[string]string{}
	for name, from := range tested {
		found := versions(t, from.module, from.folders)
		oldest[name] = strings.Join(strings.Split(strings.TrimPrefix(found[0], "v"), ".")[:2], ".")
		if want := strings.ReplaceAll(strings.Join(found, ", "), "v", ""); rows[name] != want {
			t.Errorf("README.md has %q for %s, and the tests build %q", rows[name], name, want)
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("README.md has a row %s, and no test builds it", name)
	}
	for file, want := range map[string]string{
		"chart/Chart.yaml": `kubeVersion: ">=` + oldest["Kubernetes"] + `.0-0"`,
		"chart/README.md":  "Kubernetes " + oldest["Kubernetes"] + " and Helm " + oldest["Helm"],
		"../README.md":     "on Kubernetes " + oldest["Kubernetes"] + " or newer",
	} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not have %q: %v", file, want, err)
		}
	}
}
