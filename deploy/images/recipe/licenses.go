package recipe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/deploy/images/oci"
	"github.com/gpuslice/gpuslice/deploy/images/sbom"
)

// licenses are the texts that come with modules, keyed by module and file name. Nearly all licences want them to go
// along with a distribution.
type licenses map[string]map[string]string

// own is the module of this checkout, standard the name of the standard library.
const (
	own      = "github.com/gpuslice/gpuslice"
	standard = "std"
)

// collect reads the licences of modules, of the standard library and our own.
func collect(ctx context.Context, o *Options, modules []string) (licenses, error) {
	folders, err := moduleFolders(ctx, o, modules)
	if err != nil {
		return nil, err
	}
	root, err := goCommand(ctx, o, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	folders[own], folders[standard] = o.Checkout, strings.TrimSpace(string(root))
	all := licenses{}
	for module, folder := range folders {
		if all[module], err = texts(folder); err != nil {
			return nil, fmt.Errorf("read licences of %s: %w", module, err)
		}
	}
	return all, nil
}

// moduleFolders returns where the sources of modules lie.
func moduleFolders(ctx context.Context, o *Options, modules []string) (map[string]string, error) {
	out, err := goCommand(ctx, o, append([]string{"list", "-m", "-json=Path,Dir"}, modules...)...)
	if err != nil {
		return nil, err
	}
	folders := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return folders, nil
		} else if err != nil {
			return nil, fmt.Errorf("read list of modules: %w", err)
		}
		folders[m.Path] = m.Dir
	}
}

func goCommand(ctx context.Context, o *Options, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = o.Checkout, append(o.environment(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run go %s %s: %w", args[0], args[1], err)
	}
	return out, nil
}

// texts returns the files at the top of a module that have the names of licences.
func texts(folder string) (map[string]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if !e.Type().IsRegular() ||
			!slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE"}, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		found[e.Name()] = string(text)
	}
	return found, nil
}

// of returns the licence of a module as an SPDX expression.
func (l licenses) of(module string) string {
	var all strings.Builder
	for name, text := range l[module] {
		if !strings.HasPrefix(strings.ToUpper(name), "NOTICE") {
			all.WriteString(text + "\n")
		}
	}
	return sbom.Recognise(all.String())
}

// files returns the texts as they stand in an image.
func (l licenses) files() map[string]oci.File {
	files := map[string]oci.File{}
	for module, texts := range l {
		for name, text := range texts {
			files[path.Join("/usr/share/licenses", module, name)] = oci.Text(text)
		}
	}
	return files
}
