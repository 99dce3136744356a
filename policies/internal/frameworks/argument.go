package frameworks

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/commandline"
)

// argument checks a limit that exists on the command line alone, and warns or denies with the exact flag to write.
func (e *evaluation) argument(p *compiled, a Argument) {
	if !slices.Contains(a.Views, e.in.View) {
		return
	}
	given, unknown := commandline.GivenTo(e.in.Container, p.commands)
	for _, off := range a.Unless {
		flag, value, valued := strings.Cut(off, "=")
		if set, found, _ := commandline.FlagIn(given, flag); found && (!valued || set.Text == value) {
			says := fmt.Sprintf("%s switches %s off, and bounds a part of the memory at most", off, a.Flag)
			e.out.Notes = append(e.out.Notes, says)
			e.reasons = append(e.reasons, says)
			return
		}
	}
	most, err := formulas[a.Most](e.amounts)
	value, found, doubt := commandline.FlagIn(given, a.Flag)
	elsewhere, named := "", false
	if unknown != nil {
		elsewhere, named = commandline.Flag(e.found.words, a.Flag)
	}
	switch {
	case err != nil:
		e.argumentUnknown(a, found || named, err)
	case named:
		e.object(p, a, most, fmt.Sprintf("%s=%s is not known to reach %s: %v", a.Flag, shorten.Text(elsewhere, maxQuoted), p.Title, unknown))
	case found && doubt != nil:
		e.object(p, a, most, fmt.Sprintf("%s=%s may not count: %s; write it last", a.Flag, shorten.Text(value.Text, maxQuoted),
			shorten.Text(doubt.Error(), maxQuoted)))
	case found && (value.Opaque || strings.Contains(value.Text, "$")):
		e.warnOnce(fmt.Sprintf("%s=%s is known at run time only: at most %s fits the slice", a.Flag, shorten.Text(value.Text, maxQuoted), most))
		e.reasons = append(e.reasons, a.Flag+" is known at run time only")
	case !found && e.in.Framework == "" && errors.Is(unknown, commandline.ErrIdle):
		e.reasons = append(e.reasons, fmt.Sprintf("its command starts no %s", p.Title))
	case !found && (a.Takes == "" || atMost(a.Takes, most) != nil):
		e.object(p, a, most, fmt.Sprintf("%s; add %s=%s for %s of %s", a.Default, a.Flag, most, size(e.amounts.perProcess), size(e.amounts.total)))
		if e.in.Framework == "" && errors.Is(unknown, commandline.ErrElsewhere) {
			e.orNone(p)
		}
	case !found && cmp.Or(unknown, doubt) != nil:
		e.reasons = append(e.reasons, fmt.Sprintf("%s: %v", a.Flag, cmp.Or(unknown, doubt)))
	case !found:
		e.argumentGiven(p, a, a.Takes, most)
	default:
		e.argumentGiven(p, a, value.Text, most)
	}
}

// argumentUnknown warns that no value can be named; only a user without one can act on it.
func (e *evaluation) argumentUnknown(a Argument, found bool, err error) {
	e.reasons = append(e.reasons, fmt.Sprintf("%s: %v", a.Flag, err))
	switch {
	case found || errors.Is(err, errWhole):
	case errors.Is(err, errNoTotal):
		e.warnOnce(fmt.Sprintf("%s; set %s to fit the slice (%v)", a.Default, a.Flag, err))
	default:
		e.warnOnce(fmt.Sprintf("%s has no value that fits: %v", a.Flag, err))
	}
}

func (e *evaluation) argumentGiven(p *compiled, a Argument, value, most string) {
	err := atMost(value, most)
	if err != nil {
		e.object(p, a, most, fmt.Sprintf("%s=%s does not fit %s of %s; write %s=%s",
			a.Flag, shorten.Text(value, maxQuoted), size(e.amounts.perProcess), size(e.amounts.total), a.Flag, most))
		return
	}
	if a.Cap {
		e.cap(fmt.Sprintf("%s=%s (%s)", a.Flag, value, p.Title))
	}
}

// orNone names the label for a container of which only the image shows the framework.
func (e *evaluation) orNone(p *compiled) {
	says := fmt.Sprintf("if its command starts no %s, write the label %s: %q", p.Title, api.LabelFramework, None)
	if n := len(e.out.Denials); n > 0 {
		e.out.Denials[n-1].Detail += "; " + says
		return
	}
	e.warnOnce(says)
}

// object denies or rewrites if policy does, and warns elsewhere.
func (e *evaluation) object(p *compiled, a Argument, most, says string) {
	mode := e.in.Switches[p.Name].Arguments
	if mode == ArgumentsRewrite {
		unseen := unseen(e.in.Container, a.AppendTo)
		if unseen == "" {
			e.rewrite(p, a, most)
			return
		}
		says += ": it cannot be added for you, since " + unseen
	}
	e.reasons = append(e.reasons, says)
	if mode == ArgumentsDeny || mode == ArgumentsRewrite {
		e.out.Denials = append(e.out.Denials, Denial{DeniedArgument, says})
		return
	}
	e.warnOnce(says)
}
