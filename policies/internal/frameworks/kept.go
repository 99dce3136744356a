package frameworks

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/internal/commandline"
)

// kept looks for the user's own setting in place of s, as an argument or under any of its names, and reports its
// effect. It returns true when there is one: ours is not set then.
func (e *evaluation) kept(choice choice, s Setting, spec Variable) bool {
	theirs := e.theirs(choice.profile, s.Name, spec)
	if len(theirs) == 0 {
		return false
	}
	if spec.Exclusive && len(theirs) > 1 {
		e.denyBoth(choice, theirs)
		return true
	}
	first := theirs[0]
	e.out.Notes = append(e.out.Notes, fmt.Sprintf("%s=%s is the pod's own and stays", first.name, first.show()))
	e.warnFatal(choice, first)
	if !s.Cap {
		return true
	}
	err := e.uncappedError(first, spec)
	if err == nil {
		e.cap(fmt.Sprintf("%s=%s, the pod's own (%s)", first.name, shorten.Text(first.value, maxQuoted), choice.people()))
		return true
	}
	says := fmt.Sprintf("%s=%s stays, and sets no cap: %v", first.name, first.show(), err)
	e.reasons = append([]string{says}, e.reasons...)
	if usersMatter(err) {
		e.out.Warnings = append(e.out.Warnings, says)
	}
	return true
}

// theirs returns the user's settings under all names, the one in force first. An argument wins over every variable.
func (e *evaluation) theirs(p *compiled, name string, spec Variable) []theirs {
	for _, flag := range spec.Flags {
		word, elsewhere := commandline.Flag(e.found.words, flag)
		given, unknown := commandline.GivenTo(e.in.Container, p.commands)
		value, found, doubt := commandline.FlagIn(given, flag)
		switch {
		case found:
			return []theirs{{name: flag, value: value.Text, readable: !value.Opaque && doubt == nil && !strings.Contains(value.Text, "$")}}
		case elsewhere && unknown != nil:
			return []theirs{{name: flag, value: word}}
		}
	}
	var all []theirs
	names := spec.Names
	if len(names) == 0 {
		names = []string{name}
	}
	for _, n := range names {
		if theirs, found := lookup(e.in.Container, n); found {
			all = append(all, theirs)
		}
	}
	return all
}

func (e *evaluation) denyBoth(choice choice, theirs []theirs) {
	var names []string
	for _, t := range theirs {
		names = append(names, t.name)
	}
	says := fmt.Sprintf("%s are both set, and %s exits with an error if they are; keep one of them",
		strings.Join(names, " and "), choice.profile.Title)
	e.out.Denials = append(e.out.Denials, Denial{DeniedConflict, says})
	e.reasons = append(e.reasons, says)
}

// warnFatal warns of settings that a framework of this version dies of.
func (e *evaluation) warnFatal(choice choice, theirs theirs) {
	if choice.profile.conf == nil || !choice.version.known() || !theirs.readable {
		return
	}
	if key, from := choice.profile.confUnknownAt(theirs.value, choice.version); key != "" {
		e.warnOnce(fmt.Sprintf("%s has %s, which %s knows from %s on; %s exits with an error",
			theirs.name, key, choice.profile.Title, from, choice.version))
	}
}

// uncappedError returns why the user's value is no cap, and nil when it is one.
func (e *evaluation) uncappedError(theirs theirs, spec Variable) error {
	if e.uncaps != "" {
		return errors.New(e.uncaps)
	}
	if !theirs.readable {
		return errors.New("its value is known at run time only")
	}
	read, ok := readers[spec.Reads]
	if !ok {
		return errors.New("it cannot be compared with the slice")
	}
	return read(theirs.value, e.amounts)
}

// usersMatter reports whether the user can do something about it: not when the pool leaves the question open.
func usersMatter(err error) bool {
	for _, ours := range []error{errNoTotal, errSliced, errView, errWhole, errFree} {
		if errors.Is(err, ours) {
			return false
		}
	}
	return true
}
