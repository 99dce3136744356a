package frameworks

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// versionLimit bounds a version's text before it is parsed; a tag ends at 128 bytes.
const versionLimit = 128

// version is a release number. The zero value is a version that is not known.
type version struct {
	major, minor, patch int
	pre                 bool   // alpha, beta, candidate or nightly: older than the release of the same number
	open                bool   // this version or a newer one
	text                string // as it was written, without a leading v and without build details
}

func (v version) known() bool { return v.text != "" }

// String returns the version for people, and "" for one that is not known.
func (v version) String() string {
	if v.open {
		return v.text + " or newer"
	}
	return v.text
}

// compare returns -1, 0 or 1 as v is older than, the same as or newer than w.
func (v version) compare(w version) int {
	n := cmp.Or(cmp.Compare(v.major, w.major), cmp.Compare(v.minor, w.minor), cmp.Compare(v.patch, w.patch))
	switch {
	case n != 0 || v.pre == w.pre:
		return n
	case v.pre:
		return -1
	}
	return 1
}

// The number, and optional parts before the details of a build: a pre-release, a post-release, a fourth number.
var versionPattern = regexp.MustCompile(
	`^[vV]?((\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?:\.\d{1,6})*((?:a|b|rc|\.?dev)\d*)?(?:\.post\d+)?)(?:[-+_].*)?$`)

// A segment of a tag that marks a build from before the release. "devel" is no such mark: it means that compilers are in the image.
var prereleasePattern = regexp.MustCompile(`[-_.](?:alpha|beta|dev|nightly|pre|preview|rc)\.?\d*(?:[-_+.]|$)`)

// parseVersion reads a version at the beginning of a text such as an image tag. Texts that begin otherwise
// ("latest", a date with dashes) are no version.
func parseVersion(text string) (version, bool) {
	text = strings.TrimSpace(text)
	if len(text) > versionLimit {
		return version{}, false
	}
	m := versionPattern.FindStringSubmatch(text)
	if m == nil {
		return version{}, false
	}
	v := version{text: m[1], pre: m[5] != "" || prereleasePattern.MatchString(text)}
	// The pattern admits six digits at most, so these cannot fail; a group that is absent is zero.
	v.major, _ = strconv.Atoi(m[2])
	v.minor, _ = strconv.Atoi(m[3])
	v.patch, _ = strconv.Atoi(m[4])
	if v.pre && m[5] == "" {
		v.text += "-pre"
	}
	return v, true
}

// bounds is a compiled Range.
type bounds struct {
	from, below version
}

func (b bounds) empty() bool { return !b.from.known() && !b.below.known() }

// holds reports whether a known version lies in the bounds. One that is open above lies in no range with an end.
func (b bounds) holds(v version) bool {
	if !v.known() || b.from.known() && v.compare(b.from) < 0 {
		return false
	}
	return !b.below.known() || v.compare(b.below) < 0 && !v.open
}

type step struct {
	from, is version
}

// climb returns the version of the last step that key reaches, and an unknown one before the first step.
func climb(steps []step, key version) version {
	found := version{}
	for i, s := range steps {
		if key.compare(s.from) < 0 {
			break
		}
		found = s.is
		found.open = i == len(steps)-1 && key.compare(s.from) > 0
	}
	return found
}

// versionRule is a compiled VersionRule.
type versionRule struct {
	images          []pattern
	tag, repository *regexp.Regexp
	steps           []step
}

// read returns the version that the rule reads from the image; ok is false when the rule is not about this image.
func (r versionRule) read(image image) (v version, ok bool) {
	if !anyMatches(r.images, image) {
		return v, false
	}
	text := image.tag
	switch {
	case r.repository != nil:
		text = groups(r.repository, image.repository())
	case r.tag != nil:
		text = groups(r.tag, image.tag)
	}
	v, ok = parseVersion(text)
	if !ok || r.steps == nil {
		return v, ok
	}
	v = climb(r.steps, v)
	return v, v.known()
}

// groups returns the groups of the first match that took part, joined with dots.
func groups(re *regexp.Regexp, text string) string {
	m := re.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return strings.Join(slices.DeleteFunc(m[1:], func(s string) bool { return s == "" }), ".")
}
