package sbom

import (
	"debug/buildinfo"
	"net/url"
	"runtime/debug"
	"strings"
)

// Component is a part of an image that has a version and a licence of its own.
type Component struct {
	Name, Version string
	// URL names the component for scanners: a package URL.
	URL string
	// License is an SPDX expression, or Unknown.
	License string
	// Digest is the SHA-256 of the file that the component came in, where there is one.
	Digest string
	// Remark is its source, or another note on it.
	Remark string
	// Parts are linked into it.
	Parts []Component
}

// Unknown is the licence of a component without one that we recognise.
const Unknown = "NOASSERTION"

// Program describes a Go program with the modules linked into it. License returns that of a module by its path, "std"
// for the standard library.
func Program(info *buildinfo.BuildInfo, version, digest string, license func(module string) string) Component {
	_, file, _ := strings.Cut(info.Path, info.Main.Path+"/")
	c := Component{
		Name: info.Path, Version: version, Digest: digest, License: license(info.Main.Path),
		URL: golang(info.Main.Path, version) + "#" + file, Remark: "built by " + info.GoVersion,
		Parts: []Component{{
			Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"), License: license("std"),
			URL: golang("std", strings.TrimPrefix(info.GoVersion, "go")), Remark: "the Go standard library",
		}},
	}
	for _, m := range info.Deps {
		c.Parts = append(c.Parts, module(m, license))
	}
	return c
}

// Linked returns the paths of the modules whose code is in a program, without the replaced ones.
func Linked(info *buildinfo.BuildInfo) []string {
	var paths []string
	for _, m := range info.Deps {
		paths = append(paths, used(m).Path)
	}
	return paths
}

func module(m *debug.Module, license func(string) string) Component {
	m = used(m)
	return Component{Name: m.Path, Version: m.Version, URL: golang(m.Path, m.Version), License: license(m.Path), Remark: "go.sum " + m.Sum}
}

func used(m *debug.Module) *debug.Module {
	if m.Replace != nil {
		return m.Replace
	}
	return m
}

func golang(path, version string) string {
	return "pkg:golang/" + strings.ToLower(path) + "@" + url.QueryEscape(version)
}
