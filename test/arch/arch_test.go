package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/gpuslice/gpuslice"

// rule forbids packages to every package under a folder: reached through any path, or imported directly.
type rule struct {
	under     string   // folder of the module
	reached   []string // import path prefixes that must not be in the transitive closure
	imported  []string // import paths that the package itself must not name
	because   string
	allowedBy []string // own packages that may be imported; nil: any
}

func rules() []rule {
	kubernetes := []string{"k8s.io/", "sigs.k8s.io/"}
	commandLine := []string{"sigs.k8s.io/controller-runtime/pkg/manager", "sigs.k8s.io/controller-runtime/pkg/client",
		"k8s.io/cli-runtime", "sigs.k8s.io/kustomize", "helm.sh/", "github.com/spf13/viper"}
	startsFast := "the command line starts in milliseconds: it carries the webhook's own snapshot and a client, and no machinery"
	return []rule{
		{under: "policies",
			reached: []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/spf13/viper", "github.com/NVIDIA/"},
			because: "the core is the same in the webhook, the command line and the tests: it knows no cluster and no device"},
		{under: "policies", imported: []string{"os", "net", "net/http", "context", "log", "log/slog", "sync"},
			because: "the core does no I/O, has no state and says nothing: what it decides depends on its arguments alone"},
		{under: "policies", allowedBy: []string{module + "/policies", module + "/guard/limits", module + "/guard/shorten"},
			because: "imports run one way: cmd -> webhook, certs -> policies -> guard/limits, guard/shorten"},
		{under: "guard", reached: append(slices.Clone(kubernetes), "github.com/spf13/viper"),
			because: "the guard ships in every GPU pod: it stays small, and no Kubernetes code runs beside a tenant"},
		{under: "cmd/guard", reached: append(slices.Clone(kubernetes), "github.com/spf13/viper"),
			because: "the guard ships in every GPU pod: it stays small, and no Kubernetes code runs beside a tenant"},
		{under: "cmd/agent",
			reached: []string{"sigs.k8s.io/controller-runtime", "github.com/spf13/viper", module + "/policies/pools", module + "/policies/podedit",
				module + "/webhook"},
			because: "it may signal every process of its node: it carries a client and reads promises, and no machinery"},
		{under: "guard/limits", reached: []string{"github.com/", "golang.org/x/"}, allowedBy: []string{},
			because: "the contract between webhook and guard is standard library only, so that both sides can hold it"},
		{under: "webhook/admission", reached: []string{module + "/webhook/leader"},
			because: "each replica answers reviews, and what one replica does for all reads what these keep"},
		{under: "webhook", reached: []string{"github.com/NVIDIA/", "github.com/spf13/viper"},
			because: "the admission edge reads no device, and its settings come as a value"},
		{under: "webhook/admission/review", reached: []string{"sigs.k8s.io/controller-runtime"},
			because: "an answer is an Answer or a Fault: a library's response with a status code in it is neither"},
		{under: "certs", allowedBy: []string{module + "/certs"},
			because: "where the serving certificate comes from has nothing to do with what is served"},
		{under: "cmd/client", reached: commandLine, because: startsFast},
		{under: "cmd/gpuslice", reached: commandLine, because: startsFast},
	}
}

// pkg is what go list says of a package.
type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestImports(t *testing.T) {
	t.Run("follow the rules", func(t *testing.T) {
		packages := list(t)
		for _, r := range rules() {
			t.Run(r.under+" "+r.because, func(t *testing.T) {
				seen := 0
				for _, p := range packages {
					if !within(p.ImportPath, r.under) {
						continue
					}
					seen++
					for _, broken := range r.check(p) {
						t.Errorf("%s %s\nbecause %s", p.ImportPath, broken, r.because)
					}
				}
				if seen == 0 {
					t.Errorf("no package lies under %s: the rule guards nothing", r.under)
				}
			})
		}
	})
}

// TestImportsFound keeps the check itself honest.
func TestImportsFound(t *testing.T) {
	t.Run("a broken rule is found", func(t *testing.T) {
		p := pkg{ImportPath: module + "/policies", Imports: []string{"os", module + "/webhook"}, Deps: []string{"k8s.io/client-go/rest"}}
		r := rule{reached: []string{"k8s.io/client-go"}, imported: []string{"os"}, allowedBy: []string{module + "/policies"}}
		if got := r.check(p); len(got) != 3 {
			t.Errorf("three rules are broken, seen: %q", got)
		}
	})
}

func (r rule) check(p pkg) (broken []string) {
	for _, dep := range p.Deps {
		for _, prefix := range r.reached {
			if strings.HasPrefix(dep, prefix) {
				broken = append(broken, "reaches "+dep)
			}
		}
	}
	for _, path := range p.Imports {
		if slices.Contains(r.imported, path) {
			broken = append(broken, "imports "+path)
		}
		if r.allowedBy != nil && strings.HasPrefix(path, module+"/") &&
			!slices.ContainsFunc(r.allowedBy, func(a string) bool { return path == a || strings.HasPrefix(path, a+"/") }) {
			broken = append(broken, "imports "+path)
		}
	}
	return broken
}

func within(importPath, folder string) bool {
	path := strings.TrimPrefix(importPath, module+"/")
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps=false", "-json=ImportPath,Imports,Deps", module+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// TestTopLevel keeps the root readable: a newcomer finds each thing by the name of its folder.
func TestTopLevel(t *testing.T) {
	t.Run("is fixed", func(t *testing.T) {
		allowed := []string{"cmd", "webhook", "guard", "policies", "deploy", "certs", "test", "go.mod", "go.sum", "Makefile", "Dockerfile", "README.md",
			"LICENSE", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"}
		entries, err := os.ReadDir("../..")
		if err != nil {
			t.Fatal(err)
		}
		built := []string{"bin", "out"}
		for _, e := range entries {
			if name := e.Name(); !strings.HasPrefix(name, ".") && !slices.Contains(allowed, name) && !slices.Contains(built, name) {
				t.Errorf("%s does not belong at the top: it holds %q and hidden files", name, allowed)
			}
		}
	})
}
