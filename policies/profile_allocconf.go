package policies

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// profileAllocKey is the key with which PyTorch caps itself, and profileAllocBackend the one that makes it forget the cap.
const (
	profileAllocKey     = "per_process_memory_fraction"
	profileAllocBackend = "backend"
)

// profileAllocEntry is a compiled ProfileAllocEntry; allowed is nil where policy may not use the key.
type profileAllocEntry struct {
	from    profileVersion
	allowed *regexp.Regexp
}

func (ps *profileProblems) allocKeys(at string, keys map[string]ProfileAllocEntry) map[string]profileAllocEntry {
	compiled := make(map[string]profileAllocEntry, len(keys))
	for key, k := range keys {
		entry := profileAllocEntry{from: ps.version(at+"."+key+".from", k.From)}
		if k.Value != "" {
			entry.allowed = ps.pattern(at+"."+key+".value", "^(?:"+k.Value+")$")
		}
		if !entry.from.known() {
			ps.add(at+"."+key+".from", "is required")
		}
		compiled[key] = entry
	}
	return compiled
}

// profileAllocPairs splits "key:value,key:value". Commas and colons within brackets belong to the value.
func profileAllocPairs(text string) [][2]string {
	var pairs [][2]string
	depth, begin := 0, 0
	cut := func(end int) {
		key, value, _ := strings.Cut(strings.TrimSpace(text[begin:end]), ":")
		if key != "" {
			pairs = append(pairs, [2]string{strings.TrimSpace(key), strings.TrimSpace(value)})
		}
		begin = end + 1
	}
	for i, c := range text {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth <= 0:
			cut(i)
		}
	}
	if begin <= len(text) {
		cut(len(text))
	}
	return pairs
}

// profileReadAllocConf finds the fraction in a user's settings. With another backend than the native one PyTorch drops it.
func profileReadAllocConf(value string, a profileAmounts) error {
	err := errors.New("it has no " + profileAllocKey)
	for _, pair := range profileAllocPairs(value) {
		switch {
		case pair[0] == profileAllocBackend && pair[1] != "native":
			return fmt.Errorf("backend %q ignores a memory fraction", profileShorten(pair[1]))
		case pair[0] == profileAllocKey:
			err = profileReadFraction(pair[1], a)
		}
	}
	return err
}

// profileOldest returns the first version that reads the settings at all.
func profileOldest(conf map[string]profileAllocEntry) profileVersion {
	oldest := profileVersion{}
	for _, entry := range conf {
		if !oldest.known() || entry.from.compare(oldest) < 0 {
			oldest = entry.from
		}
	}
	return oldest
}

// confUnknownAt returns the first key of a settings text that the version does not know, and dies of, with the version that brought it.
// A version that is not known counts as the oldest one that reads the settings.
func (c *profileCompiled) confUnknownAt(text string, v profileVersion) (key string, from profileVersion) {
	if !v.known() {
		v = c.confOldest
	}
	for _, pair := range profileAllocPairs(text) {
		if entry, ok := c.conf[pair[0]]; ok && v.compare(entry.from) < 0 {
			return pair[0], entry.from
		}
	}
	return "", profileVersion{}
}

// confErrors validates a settings text that policy puts in the place of the default.
func (c *profileCompiled) confErrors(at *field.Path, text string) field.ErrorList {
	if c.AllocConf == nil {
		return field.ErrorList{field.Forbidden(at, c.Title+" has no such settings")}
	}
	var errs field.ErrorList
	var seen []string
	if text != "" && (strings.ContainsAny(text, " \t\n$") || strings.HasSuffix(text, ",") || strings.HasPrefix(text, ",") || strings.Contains(text, ",,")) {
		errs = append(errs, field.Invalid(at, profileShorten(text), "spaces, $ and empty entries end the program that reads them; write key:value,key:value"))
	}
	for _, pair := range profileAllocPairs(text) {
		entry, ok := c.conf[pair[0]]
		switch {
		case !ok || entry.allowed == nil:
			errs = append(errs, field.NotSupported(at, profileShorten(pair[0]), c.confKeys()))
		case slices.Contains(seen, pair[0]):
			errs = append(errs, field.Duplicate(at, pair[0]))
		case !entry.allowed.MatchString(pair[1]):
			errs = append(errs, field.Invalid(at, profileShorten(pair[0]+":"+pair[1]), "accepted is "+c.AllocConf.Keys[pair[0]].Value))
		}
		seen = append(seen, pair[0])
	}
	return errs
}

// confKeys returns the keys that policy may use, sorted.
func (c *profileCompiled) confKeys() []string {
	var keys []string
	for key, entry := range c.conf {
		if entry.allowed != nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
