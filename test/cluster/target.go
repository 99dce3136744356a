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
	tags     string            // build tags, with commas
	cgo      bool              // needs a C compiler
	seccomp  bool              // needs one, and libseccomp, and is linked statically
}

// requirement matches one line of a go.mod file's require block.
var requirement = regexp.MustCompile(`(?m)^\s*(?:require )?(\S+) (v\S+)`)

// args returns the arguments of go build for t, without the output, by its go.mod in dir.
func (t Target) args(dir string) ([]string, error) {
	ld := "-s -w"
	if t.seccomp {
		ld += " -extldflags -static"
	}
	for variable, module := range t.stamp {
		version, err := requiredVersion(filepath.Join(dir, "go.mod"), module)
		if err != nil {
			return nil, fmt.Errorf("stamp %s: %w", t.name, err)
		}
		ld += fmt.Sprintf(" -X %s=%s", variable, version)
	}
	args := []string{"-trimpath", "-ldflags", ld}
	if t.tags != "" {
		args = append(args, "-tags", t.tags)
	}
	return append(args, t.packages...), nil
}

// requiredVersion returns the version of module in a go.mod file.
func requiredVersion(path, module string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read module: %w", err)
	}
	for _, m := range requirement.FindAllStringSubmatch(string(text), -1) {
		if m[1] == module {
			return m[2], nil
		}
	}
	return "", fmt.Errorf("%s requires no %s", path, module)
}

// key returns a hash over everything that t is built from: the files of its module (which pin all
// others), the arguments and the version of Go.
func (t Target) key(dir string, args []string, goVersion string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%t\n%s/%s\n%s\n%s\n", t.name, goVersion, t.cgo, runtime.GOOS, runtime.GOARCH,
		strings.Join(args, "\n"), strings.Join(t.links, " "))
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
