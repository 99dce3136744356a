package policies

import (
	"errors"
	"fmt"
	"slices"
)

// argument checks a limit that exists on the command line alone, and warns or refuses with the exact flag to write.
func (e *profileEvaluation) argument(p *profileCompiled, a ProfileArgument) {
	if !slices.Contains(a.Views, e.in.View) {
		return
	}
	if off := profileAnyFlag(e.found.words, a.Unless); off != "" {
		says := fmt.Sprintf("%s switches %s off, and bounds a part of the memory only", off, a.Flag)
		e.out.Notes = append(e.out.Notes, says)
		e.reasons = append(e.reasons, says)
		return
	}
	most, err := profileFormulas[a.Most](e.amounts)
	word, found := profileFlag(e.found.words, a.Flag)
	value, readable := profileResolve(e.in.Container, word)
	switch {
	case err != nil:
		e.argumentUnknown(a, found, err)
	case found && !readable:
		e.warnOnce(fmt.Sprintf("%s=%s is known at run time only: at most %s fits the slice", a.Flag, profileShorten(word), most))
		e.reasons = append(e.reasons, a.Flag+" is known at run time only")
	case !found && (a.Takes == "" || profileAtMost(a.Takes, most) != nil):
		e.argumentMissing(p, a, most)
	case !found:
		e.argumentGiven(p, a, a.Takes, most)
	default:
		e.argumentGiven(p, a, value, most)
	}
}

// argumentUnknown says that no value can be named; only a user without one can act on it.
func (e *profileEvaluation) argumentUnknown(a ProfileArgument, found bool, err error) {
	e.reasons = append(e.reasons, fmt.Sprintf("%s: %v", a.Flag, err))
	switch {
	case found || errors.Is(err, errProfileWhole):
	case errors.Is(err, errProfileNoTotal):
		e.warnOnce(fmt.Sprintf("%s; set %s to fit the slice (%v)", a.Default, a.Flag, err))
	default:
		e.warnOnce(fmt.Sprintf("%s has no value that fits: %v", a.Flag, err))
	}
}

func (e *profileEvaluation) argumentMissing(p *profileCompiled, a ProfileArgument, most string) {
	says := fmt.Sprintf("%s; add %s=%s for %s of %s", a.Default, a.Flag, most, profileSize(e.amounts.share), profileSize(e.amounts.total))
	e.object(p, a, most, says)
}

func (e *profileEvaluation) argumentGiven(p *profileCompiled, a ProfileArgument, value, most string) {
	err := profileAtMost(value, most)
	if err != nil {
		e.object(p, a, most, fmt.Sprintf("%s=%s does not fit %s of %s; write %s=%s", a.Flag, profileShorten(value), profileSize(e.amounts.share), profileSize(e.amounts.total), a.Flag, most))
		return
	}
	if a.Cap {
		e.cap(fmt.Sprintf("%s=%s (%s)", a.Flag, value, p.Title))
	}
}

// object refuses or rewrites where policy says so, and warns elsewhere.
func (e *profileEvaluation) object(p *profileCompiled, a ProfileArgument, most, says string) {
	mode := e.in.Switches[p.Name].Arguments
	if mode == ProfileArgumentsRewrite {
		unseen := profileUnseen(e.in.Container, a.AppendTo)
		if unseen == "" {
			e.rewrite(p, a, most)
			return
		}
		says += ": it cannot be added for you, since " + unseen
	}
	e.reasons = append(e.reasons, says)
	if mode == ProfileArgumentsRefuse || mode == ProfileArgumentsRewrite {
		e.out.Refusals = append(e.out.Refusals, ProfileRefusal{ProfileRefusedArgument, says})
		return
	}
	e.warnOnce(says)
}
