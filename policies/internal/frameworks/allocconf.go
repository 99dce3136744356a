package frameworks

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/guard/shorten"
)

// allocKey is the key with which PyTorch caps itself, and allocBackend the one that makes it forget the cap.
const (
	allocKey     = "per_process_memory_fraction"
	allocBackend = "backend"
)

// allocEntry is a compiled AllocEntry; allowed is nil where policy may not use the key.
type allocEntry struct {
	from    version
	allowed *regexp.Regexp
}

func (ps *problems) allocKeys(at string, keys map[string]allocSpec) map[string]allocEntry {
	compiled := make(map[string]allocEntry, len(keys))
	for key, k := range keys {
		entry := allocEntry{from: ps.version(at+"."+key+".from", k.From)}
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

// allocPairs splits "key:value,key:value". Commas and colons within brackets belong to the value.
func allocPairs(text string) [][2]string {
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

// readAllocConf finds the fraction in a user's settings. With another backend than the native one PyTorch drops it.
func readAllocConf(value string, a amounts) error {
	err := errors.New("it has no " + allocKey)
	for _, pair := range allocPairs(value) {
		switch {
		case pair[0] == allocBackend && pair[1] != "native":
			return fmt.Errorf("backend %q ignores a memory fraction", shorten.Text(pair[1], maxQuoted))
		case pair[0] == allocKey:
			err = readFraction(pair[1], a)
		}
	}
	return err
}

// oldest returns the first version that reads the settings at all.
func oldest(conf map[string]allocEntry) version {
	oldest := version{}
	for _, entry := range conf {
		if !oldest.known() || entry.from.compare(oldest) < 0 {
			oldest = entry.from
		}
	}
	return oldest
}

// confUnknownAt returns the first key of a settings text that the version does not know, and dies of, with the version that brought it.
// A version that is not known counts as the oldest one that reads the settings.
func (c *compiled) confUnknownAt(text string, v version) (key string, from version) {
	if !v.known() {
		v = c.confOldest
	}
	for _, pair := range allocPairs(text) {
		if entry, ok := c.conf[pair[0]]; ok && v.compare(entry.from) < 0 {
			return pair[0], entry.from
		}
	}
	return "", version{}
}

// confErrors validates a settings text that policy puts in the place of the default. The empty text turns the settings off.
func (c *compiled) confErrors(at *field.Path, text string) field.ErrorList {
	if c.AllocConf == nil {
		return field.ErrorList{field.Forbidden(at, c.Title+" has no such settings")}
	}
	if text == "" {
		return nil
	}
	var errs field.ErrorList
	var seen []string
	// No value that policy may use has a comma in it. An entry that is empty ends the program that reads it.
	for entry := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(entry, ":")
		known := c.conf[key]
		switch {
		case known.allowed == nil:
			errs = append(errs, field.NotSupported(at, shorten.Text(key, maxQuoted), c.confKeys()))
		case slices.Contains(seen, key):
			errs = append(errs, field.Duplicate(at, key))
		case !known.allowed.MatchString(value):
			errs = append(errs, field.Invalid(at, shorten.Text(entry, maxQuoted), "accepted is "+key+":"+c.AllocConf.Keys[key].Value))
		}
		seen = append(seen, key)
	}
	return errs
}

// confKeys returns the keys that policy may use, sorted.
func (c *compiled) confKeys() []string {
	var keys []string
	for key, entry := range c.conf {
		if entry.allowed != nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
