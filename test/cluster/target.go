package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// Target is a set of programs that one `go build` makes from one module below modules/.
type Target struct {
	name     string            // of its folder in the cache, and in messages
	module   string            // folder below modules/
	packages []string          // as go build takes them
	links    []string          // further names of the one program, which looks at argv[0]
	stamp    map[string]string // string variable -> module whose version it gets
}

// ControlPlane returns the targets that StartAPIServer needs, with kubectl.
func ControlPlane() []Target {
	version := map[string]string{"k8s.io/component-base/version.gitVersion": "k8s.io/kubernetes"}
	return []Target{
		{name: "etcd", module: "kubernetes", packages: []string{"go.etcd.io/etcd/server/v3"}},
		{name: "hyperkube", module: "kubernetes", packages: []string{"./hyperkube"}, stamp: version,
			links: []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"}},
		{name: "kubectl", module: "kubernetes", packages: []string{"k8s.io/kubernetes/cmd/kubectl"}, stamp: version},
	}
}

// requirement matches one line of a go.mod file's require block.
var requirement = regexp.MustCompile(`(?m)^\s*(?:require )?(\S+) (v\S+)`)

// args returns the arguments of go build for t, without the output, as its go.mod in dir says.
func (t Target) args(dir string) ([]string, error) {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("read module of %s: %w", t.name, err)
	}
	ld := "-s -w"
	for variable, module := range t.stamp {
		version := ""
		for _, m := range requirement.FindAllStringSubmatch(string(mod), -1) {
			if m[1] == module {
				version = m[2]
			}
		}
		if version == "" {
			return nil, fmt.Errorf("stamp %s: %s/go.mod requires no %s", t.name, t.module, module)
		}
		ld += fmt.Sprintf(" -X %s=%s", variable, version)
	}
	return append([]string{"-trimpath", "-ldflags", ld}, t.packages...), nil
}

// key returns a hash over everything that t is built from: the files of its module (which pin all
// others), the arguments and the version of Go.
func (t Target) key(dir string, args []string, goVersion string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s/%s\n%s\n%s\n", t.name, goVersion, runtime.GOOS, runtime.GOARCH, strings.Join(args, "\n"), strings.Join(t.links, " "))
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %x\n", path, sha256.Sum256(text))
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("hash module of %s: %w", t.name, err)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
