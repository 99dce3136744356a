package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
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
		"k8s.io/client-go/tools/leaderelection", "k8s.io/cli-runtime", "sigs.k8s.io/kustomize", "helm.sh/", "github.com/spf13/viper"}
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

// ofLibrary are the packages that reach controller-runtime's webhooks and manager.
var ofLibrary = []string{"webhook/admission/server", "cmd/webhook"}

// TestControllerRuntime keeps the library where reviews are served: one package that knows its Response, and the command.
func TestControllerRuntime(t *testing.T) {
	const library = "sigs.k8s.io/controller-runtime/"
	seen := map[string]bool{}
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		if strings.HasPrefix(name, "test/") || !slices.ContainsFunc(p.Deps, func(d string) bool { return strings.HasPrefix(d, library) }) {
			continue
		}
		if seen[name] = true; !slices.Contains(ofLibrary, name) {
			t.Errorf("%s reaches %s, which only %q may", name, library, ofLibrary)
		}
	}
	for _, name := range ofLibrary {
		if !seen[name] {
			t.Errorf("%s does not reach %s", name, library)
		}
	}
}

// asked are the packages that this product is built on. A copy of what one of them does, or a use in tests alone, is none.
var asked = []string{
	"github.com/NVIDIA/go-nvml", "github.com/cert-manager/cert-manager", "github.com/spf13/viper", "gomodules.xyz/jsonpatch/v2", "k8s.io/api",
	"k8s.io/apimachinery", "sigs.k8s.io/controller-runtime/pkg/webhook",
}

// TestAsked holds that product code imports each of them.
func TestAsked(t *testing.T) {
	by := map[string]string{}
	for _, p := range list(t) {
		for _, path := range p.Imports {
			for _, a := range asked {
				if !within(p.ImportPath, "test") && (path == a || strings.HasPrefix(path, a+"/")) {
					by[a] = p.ImportPath
				}
			}
		}
	}
	for _, a := range asked {
		if by[a] == "" {
			t.Errorf("no product package imports %s", a)
		}
	}
}

// TestDefaultServeMux: controller-runtime's manager imports net/http/pprof, which registers on the mux that net/http serves where it
// is given none.
func TestDefaultServeMux(t *testing.T) {
	for folder, sources := range sourceTree(t).packages() {
		if within(module+"/"+folder, "test") {
			continue
		}
		for _, s := range sources {
			for _, found := range servesDefault(s.ast) {
				t.Errorf("%s: %s", s.path, found)
			}
		}
	}
}

// TestDefaultServeMuxFound keeps the check itself honest.
func TestDefaultServeMuxFound(t *testing.T) {
	const text = `package p
import web "net/http"
var a = web.DefaultServeMux
var b = &web.Server{Addr: ":1"}
var c = web.Server{Handler: web.NotFoundHandler()}
func d() { web.HandleFunc("/", nil); _ = web.ListenAndServe(":1", nil) }`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if got := servesDefault(file); len(got) != 4 {
		t.Errorf("four uses are seen as %q", got)
	}
}

// servesDefault lists how a file uses net/http's default mux.
func servesDefault(file *ast.File) (found []string) {
	name := ""
	for _, i := range file.Imports {
		if i.Path.Value == `"net/http"` {
			if name = "http"; i.Name != nil {
				name = i.Name.Name
			}
		}
	}
	of := func(e ast.Expr, names ...string) bool {
		s, ok := e.(*ast.SelectorExpr)
		if !ok || !slices.Contains(names, s.Sel.Name) {
			return false
		}
		x, ok := s.X.(*ast.Ident)
		return ok && name != "" && x.Name == name
	}
	defaults := []string{"DefaultServeMux", "Handle", "HandleFunc", "ListenAndServe", "ListenAndServeTLS", "Serve", "ServeTLS"}
	ast.Inspect(file, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && of(e, defaults...) {
			found = append(found, "uses http."+e.(*ast.SelectorExpr).Sel.Name)
		}
		if l, ok := n.(*ast.CompositeLit); ok && of(l.Type, "Server") && !slices.ContainsFunc(l.Elts, isHandler) {
			found = append(found, "an http.Server without a Handler")
		}
		return true
	})
	return found
}

func isHandler(e ast.Expr) bool {
	pair, ok := e.(*ast.KeyValueExpr)
	if !ok {
		return false
	}
	key, ok := pair.Key.(*ast.Ident)
	return ok && key.Name == "Handler"
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

// readPackages asks go list once for all tests.
var readPackages = sync.OnceValues(func() (all []pkg, err error) {
	cmd := exec.Command("go", "list", "-deps=false", "-json=ImportPath,Imports,Deps", module+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
})

func list(t *testing.T) []pkg {
	t.Helper()
	all, err := readPackages()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTopLevel keeps the root readable: a newcomer finds each thing by the name of its folder.
func TestTopLevel(t *testing.T) {
	t.Run("is fixed", func(t *testing.T) {
		allowed := []string{"cmd", "webhook", "guard", "policies", "deploy", "certs", "test", "findings", "go.mod", "go.sum", "Makefile",
			"Dockerfile", "README.md", "LICENSE", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"}
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
