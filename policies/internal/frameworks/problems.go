package frameworks

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// problems gathers the errors of one file, each with its path.
type problems []error

func (ps *problems) add(at, format string, args ...any) {
	*ps = append(*ps, fmt.Errorf("%s: "+format, append([]any{at}, args...)...))
}

func (ps *problems) patterns(at string, texts []string) []pattern {
	var all []pattern
	for i, text := range texts {
		p, err := compilePattern(text)
		if err != nil {
			ps.add(fmt.Sprintf("%s[%d]", at, i), "%w", err)
		}
		all = append(all, p)
	}
	return all
}

func (ps *problems) version(at, text string) version {
	if text == "" {
		return version{}
	}
	v, ok := parseVersion(text)
	if !ok {
		ps.add(at, "%q is no version", text)
	}
	return v
}

func (ps *problems) bounds(at string, r Range) bounds {
	return bounds{from: ps.version(at+".from", r.From), below: ps.version(at+".below", r.Below)}
}

func (ps *problems) steps(at string, steps []stepSpec) []step {
	var all []step
	for i, s := range steps {
		here := fmt.Sprintf("%s[%d]", at, i)
		step := step{from: ps.version(here+".from", s.From), is: ps.version(here+".is", s.Is)}
		if !step.from.known() || !step.is.known() {
			ps.add(here, "from and is are required")
		}
		if i > 0 && step.from.compare(all[i-1].from) <= 0 {
			ps.add(here+".from", "%q does not come after %q", s.From, steps[i-1].From)
		}
		all = append(all, step)
	}
	return all
}

func (ps *problems) pattern(at, text string) *regexp.Regexp {
	if text == "" {
		return nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		ps.add(at, "%w", err)
	}
	return re
}

func (ps *problems) versionRules(at string, rules []versionSpec) []versionRule {
	var all []versionRule
	for i, r := range rules {
		here := fmt.Sprintf("%s[%d]", at, i)
		if len(r.Images) == 0 {
			ps.add(here+".images", "is required")
		}
		if r.Tag != "" && r.Repository != "" {
			ps.add(here, "tag and repository exclude each other")
		}
		all = append(all, versionRule{
			images:     ps.patterns(here+".images", r.Images),
			tag:        ps.pattern(here+".tag", r.Tag),
			repository: ps.pattern(here+".repository", r.Repository),
			steps:      ps.steps(here+".steps", r.Steps),
		})
	}
	return all
}

func keys[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// maxQuoted bounds a user's text in a sentence.
const maxQuoted = 40
