package policies

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// profileImageLimit bounds an image reference before it is looked at: names end at 255 bytes, tags at 128, digests below that.
const profileImageLimit = 1024

// profileImage is an image reference in lower case: the registry and the components of the repository, and the tag. A
// reference that is none, or has placeholders in it, has no parts and matches nothing.
type profileImage struct {
	parts []string
	tag   string
}

func profileParseImage(ref string) profileImage {
	ref = strings.TrimSpace(ref)
	if len(ref) > profileImageLimit || strings.ContainsFunc(ref, profileNotInImage) {
		return profileImage{}
	}
	name, _, _ := strings.Cut(strings.ToLower(ref), "@")
	tag := ""
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name, tag = name[:i], name[i+1:]
	}
	parts := strings.Split(name, "/")
	if slices.Contains(parts, "") {
		return profileImage{}
	}
	if len(parts) == 1 {
		parts = slices.Insert(parts, 0, "docker.io", "library")
	} else if !profileIsRegistry(parts[0]) {
		parts = slices.Insert(parts, 0, "docker.io")
	}
	if strings.Contains(strings.Join(parts[1:], ""), ":") {
		return profileImage{}
	}
	return profileImage{parts: parts, tag: tag}
}

func profileNotInImage(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("./:@_-+", r))
}

func profileIsRegistry(part string) bool {
	return strings.ContainsAny(part, ".:") || part == "localhost"
}

// String returns the reference in full, without a digest; "" where there is none.
func (i profileImage) String() string {
	if i.tag == "" {
		return strings.Join(i.parts, "/")
	}
	return strings.Join(i.parts, "/") + ":" + i.tag
}

// repository returns the repository path with its registry.
func (i profileImage) repository() string {
	return strings.Join(i.parts, "/")
}

// profilePattern is an image pattern, split into its components.
type profilePattern []string

func profileCompilePattern(text string) (profilePattern, error) {
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

// matches says whether the pattern describes the end of the image's path.
func (p profilePattern) matches(image profileImage) bool {
	if len(p) > len(image.parts) {
		return false
	}
	tail := image.parts[len(image.parts)-len(p):]
	// From the last component on: it is the one that differs.
	for i := len(p) - 1; i >= 0; i-- {
		if !profileGlob(p[i], tail[i]) {
			return false
		}
	}
	return true
}

// profileGlob is path.Match that first tells texts without a wildcard apart, which is nearly all of them.
func profileGlob(pattern, text string) bool {
	if !strings.ContainsAny(pattern, `*?[\`) {
		return pattern == text
	}
	ok, err := path.Match(pattern, text)
	return err == nil && ok
}

func profileAnyMatches(patterns []profilePattern, image profileImage) bool {
	return slices.ContainsFunc(patterns, func(p profilePattern) bool { return p.matches(image) })
}
