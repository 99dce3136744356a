package frameworks

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/policies/internal/commandline"
)

// imageLimit bounds an image reference before it is looked at: names end at 255 bytes, tags at 128, digests below that.
const imageLimit = 1024

// image is an image reference in lower case: the registry and the components of the repository, and the tag. A
// reference that is none, or has placeholders in it, has no parts and matches nothing.
type image struct {
	parts []string
	tag   string
}

func parseImage(ref string) image {
	ref = strings.TrimSpace(ref)
	foreign := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("./:@_-+", r))
	}
	if len(ref) > imageLimit || strings.ContainsFunc(ref, foreign) {
		return image{}
	}
	name, _, _ := strings.Cut(strings.ToLower(ref), "@")
	tag := ""
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name, tag = name[:i], name[i+1:]
	}
	parts := strings.Split(name, "/")
	if slices.Contains(parts, "") {
		return image{}
	}
	if len(parts) == 1 {
		parts = slices.Insert(parts, 0, "docker.io", "library")
	} else if !strings.ContainsAny(parts[0], ".:") && parts[0] != "localhost" { // no registry
		parts = slices.Insert(parts, 0, "docker.io")
	}
	if strings.Contains(strings.Join(parts[1:], ""), ":") {
		return image{}
	}
	return image{parts: parts, tag: tag}
}

// String returns the reference in full, without a digest; "" where there is none.
func (i image) String() string {
	if i.tag == "" {
		return strings.Join(i.parts, "/")
	}
	return strings.Join(i.parts, "/") + ":" + i.tag
}

// repository returns the repository path with its registry.
func (i image) repository() string {
	return strings.Join(i.parts, "/")
}

// pattern is an image pattern, split into its components.
type pattern []string

func compilePattern(text string) (pattern, error) {
	parts := strings.Split(strings.ToLower(text), "/")
	for _, part := range parts {
		if part == "" {
			return nil, fmt.Errorf("image pattern %q has an empty component", text)
		}
		if _, err := path.Match(part, ""); err != nil {
			return nil, fmt.Errorf("image pattern %q: %w", text, err)
		}
	}
	return parts, nil
}

// anyMatches reports whether one of the patterns describes the end of the image's path.
func anyMatches(patterns []pattern, image image) bool {
	return slices.ContainsFunc(patterns, func(p pattern) bool {
		if len(p) > len(image.parts) {
			return false
		}
		tail := image.parts[len(image.parts)-len(p):]
		// From the last component on: it is the one that differs.
		for i := len(p) - 1; i >= 0; i-- {
			if !commandline.Glob(p[i], tail[i]) {
				return false
			}
		}
		return true
	})
}
