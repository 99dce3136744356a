package frameworks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/internal/commandline"
)

// evaluation works out one container's result, profile by profile.
type evaluation struct {
	in      *Input
	found   search
	out     *Result
	amounts amounts
	reasons []string // why nothing is capped, the strongest first
	uncaps  string   // the setting that removes every cap of the profile; "" when nothing does
}

// run evaluates the chosen profile, the rules that depend on its arguments, and then the profile beneath it.
func (e *evaluation) run(choice choice) {
	e.amounts = amountsOf(e.in)
	p := choice.profile
	if e.in.Switches[p.Name].Off() {
		e.out.NotCapped = "policy turns the profile " + p.Name + " off"
		return
	}
	e.profile(choice, false)
	e.shim(choice)
	for _, a := range p.Arguments {
		e.argument(p, a)
	}
	if p.runs != nil && !e.in.Switches[p.runs.Name].Off() {
		e.profile(p.beneath(e.in, e.found, choice.version), p.Runs.OverridesCap)
	}
	if e.out.Capped {
		return
	}
	e.out.NotCapped = p.Title + " has no cap of its own that can be set here"
	if len(e.reasons) > 0 {
		e.out.NotCapped = e.reasons[0]
	}
}

// profile applies one profile's rules; with capless those that cap are left out.
func (e *evaluation) profile(choice choice, capless bool) {
	p := choice.profile
	e.uncaps = e.uncapped(p)
	settled := make([]string, 0, len(p.Variables))
	for i, rule := range p.Rules {
		if !p.applies(i, choice.version, e.in) {
			continue
		}
		made := ""
		if when := rule.When; len(when.Given)+len(when.Unless) > 0 {
			theirs, given := e.made(p, when.Given)
			if _, unless := e.made(p, when.Unless); unless || !given && len(when.Given) > 0 {
				continue
			}
			if given {
				made = strings.TrimSuffix(theirs.name+"="+theirs.show(), "=")
			}
		}
		for _, s := range rule.Set {
			if capless && s.Cap || slices.Contains(settled, s.Name) {
				continue
			}
			if e.setting(choice, s) {
				settled = append(settled, s.Name)
			}
		}
		if rule.Uncapped != "" && !capless {
			e.reasons = append(e.reasons, strings.TrimSpace(made+" "+rule.Uncapped))
		}
		e.caution(rule.Caution)
	}
}

// caution warns about what the framework takes by default.
func (e *evaluation) caution(c *Caution) {
	if c == nil {
		return
	}
	for _, name := range c.Variables {
		theirs, found := lookup(e.in.Container, name)
		if most, err := utilization(e.amounts); found && (!theirs.readable || err != nil || atMost(theirs.value, most) == nil) {
			return
		}
	}
	for _, flag := range c.Flags {
		if _, found := commandline.Flag(e.found.words, flag); found {
			return
		}
	}
	e.warnOnce(c.Says)
}

// made returns the first of the settings that the pod makes; found is false where it makes none.
func (e *evaluation) made(p *compiled, settings []string) (made theirs, found bool) {
	given, unknown := commandline.GivenTo(e.in.Container, p.commands)
	for _, s := range settings {
		name, values, valued := strings.Cut(s, "=")
		name, other := strings.CutSuffix(name, "!")
		made, found = lookup(e.in.Container, name)
		if strings.HasPrefix(name, "-") {
			var value commandline.Given
			if value, found, _ = commandline.FlagIn(given, name); unknown != nil {
				value.Text, found = commandline.Flag(e.found.words, name)
			}
			made = theirs{name: name, value: value.Text, readable: !value.Opaque}
		}
		if found && (!valued || made.readable && slices.Contains(strings.Split(values, "|"), made.value) != other) {
			return made, true
		}
	}
	return theirs{}, false
}

// applies reports whether the rule's condition holds.
func (c *compiled) applies(rule int, v version, in *Input) bool {
	when, bounds := c.Rules[rule].When, c.ruleBounds[rule]
	if len(when.Views) > 0 && !slices.Contains(when.Views, in.View) {
		return false
	}
	if when.Alone != nil && *when.Alone != in.DeviceAlone {
		return false
	}
	if !v.known() {
		return when.Unknown || bounds.empty()
	}
	if bounds.empty() {
		return !when.Unknown
	}
	return bounds.holds(v)
}

// uncapped returns the user's setting that removes the profile's caps, and warns about it.
func (e *evaluation) uncapped(p *compiled) string {
	for _, u := range p.Uncaps {
		theirs, found := lookup(e.in.Container, u.Name)
		if !found || theirs.readable && len(u.Values) > 0 && !slices.Contains(u.Values, theirs.value) {
			continue
		}
		says := fmt.Sprintf("%s=%s %s", u.Name, theirs.show(), u.Says)
		e.out.Warnings = append(e.out.Warnings, says+": no framework cap is in force")
		e.reasons = append([]string{says}, e.reasons...)
		return says
	}
	return ""
}

// show returns the value for people.
func (t theirs) show() string {
	if !t.readable {
		return "(known at run time)"
	}
	return shorten.Text(t.value, maxQuoted)
}

// setting settles one variable: the user's own stays, a guarded one is left to envFrom, else ours is set. It returns
// false when ours has no value here, so that a later rule may give one.
func (e *evaluation) setting(choice choice, s Setting) bool {
	spec := choice.profile.Variables[s.Name]
	if e.kept(choice, s, spec) {
		return true
	}
	if len(e.in.Container.EnvFrom) > 0 && !spec.Blind {
		says := fmt.Sprintf("envFrom may set %s, so it is left alone; an entry of that name in env decides it", s.Name)
		e.out.Warnings = append(e.out.Warnings, says)
		e.reasons = append(e.reasons, says)
		return true
	}
	parts, err := e.parts(choice, s.Parts)
	if err != nil {
		kind := s.Name
		if s.Cap {
			kind = "cap"
		}
		e.reasons = append(e.reasons, fmt.Sprintf("%s gets no %s: %v", choice.profile.Title, kind, err))
		return false
	}
	if len(parts) == 0 {
		return false
	}
	capped := s.Cap && e.uncaps == ""
	value := strings.ReplaceAll(strings.Join(parts, ","), "$", "$$")
	e.out.Env = append(e.out.Env, Env{Name: s.Name, Value: value, Cap: capped})
	if capped {
		e.cap(fmt.Sprintf("%s %s (%s)", s.Name, parts[0], choice.people()))
	}
	return true
}

// cap records the first cap that is in force.
func (e *evaluation) cap(says string) {
	if !e.out.Capped {
		e.out.Capped, e.out.Cap = true, says
	}
}

// people names the framework and, where it is known, its version.
func (c choice) people() string {
	return strings.TrimSpace(c.profile.Title + " " + c.version.String())
}

// parts fills in the formulas; parts that come out empty are left away.
func (e *evaluation) parts(choice choice, templates []string) ([]string, error) {
	var parts []string
	for _, template := range templates {
		before, rest, found := strings.Cut(template, "{{")
		name, after, _ := strings.Cut(rest, "}}")
		part := template
		switch formula, ok := formulas[name]; {
		case !found:
		case !ok:
			return nil, errors.New("no formula " + name)
		case name == allocFormula:
			part = before + e.allocConf(choice) + after
		default:
			value, err := formula(e.amounts)
			if err != nil {
				return nil, err
			}
			part = before + value + after
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	return parts, nil
}

// allocConf returns the settings text: policy's or the profile's own. A text with a key that this version dies of is left away.
func (e *evaluation) allocConf(choice choice) string {
	text := choice.profile.AllocConf.Default
	if own := e.in.Switches[choice.profile.Name].AllocConf; own != nil {
		text = *own
	}
	if key, from := choice.profile.confUnknownAt(text, choice.version); key != "" {
		e.warnOnce(fmt.Sprintf("policy's allocConf has %s, known from %s %s on; here it is %s: not set",
			key, choice.profile.Title, from, choice.release()))
		return ""
	}
	return text
}

// release names the version for people.
func (c choice) release() string {
	if !c.version.known() {
		return "a version not known"
	}
	return c.version.String()
}

func (e *evaluation) warnOnce(says string) {
	if !slices.Contains(e.out.Warnings, says) {
		e.out.Warnings = append(e.out.Warnings, says)
	}
}
