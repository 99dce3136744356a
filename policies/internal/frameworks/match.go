package frameworks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/internal/commandline"
)

// search holds the evidence of a container: its image, and the words of its command line.
type search struct {
	image image
	words []commandline.Word
}

// choice is a profile with the version that was found for it; profile is nil when none was recognised.
type choice struct {
	profile *compiled
	version version
	source  string
}

// choose returns the profile that applies: the one that the label or policy names, else the one whose command runs,
// else the one whose image it is. A framework that is requested and does not exist is denied.
func choose(in *Input, found search) (choice, *Denial) {
	if in.Framework == "" {
		return withVersion(in, found, recognise(table, in.Switches, found)), nil
	}
	if strings.EqualFold(in.Framework, None) {
		return choice{}, nil
	}
	p, rest := called(table, strings.ToLower(in.Framework))
	if p == nil {
		return choice{}, &Denial{DeniedFramework, fmt.Sprintf("framework %q is not known; write one of %s, with -VERSION if wanted, or %s",
			shorten.Text(in.Framework, maxQuoted), strings.Join(Names(), ", "), None)}
	}
	if rest == "" {
		return withVersion(in, found, p), nil
	}
	version, ok := parseVersion(rest)
	if !ok {
		return choice{}, &Denial{DeniedFramework, fmt.Sprintf("framework %q: %q is no version; write for example %s-2.4",
			shorten.Text(in.Framework, maxQuoted), shorten.Text(rest, maxQuoted), p.Name)}
	}
	return choice{p, version, VersionFromLabel}, nil
}

// called splits "pytorch-2.4" into the profile with the longest name that fits, and the version's text.
func called(table []*compiled, text string) (*compiled, string) {
	var found *compiled
	for _, p := range table {
		if (text == p.Name || strings.HasPrefix(text, p.Name+"-")) && (found == nil || len(p.Name) > len(found.Name)) {
			found = p
		}
	}
	if found == nil {
		return nil, ""
	}
	return found, strings.TrimPrefix(strings.TrimPrefix(text, found.Name), "-")
}

// recognise returns the profile of the framework in the container, and nil when nothing is recognised. A server comes
// before the framework that it runs on, since images of the framework carry servers too.
func recognise(table []*compiled, switches map[string]Switch, found search) *compiled {
	var byImage, byCommand *compiled
	outranks := func(p, other *compiled) bool { return other == nil || other.runs == nil && p.runs != nil }
	for _, p := range table {
		if outranks(p, byCommand) && slices.ContainsFunc(p.commands, func(c []string) bool { return commandline.Runs(found.words, c) }) {
			byCommand = p
		}
		if outranks(p, byImage) && (anyMatches(p.images, found.image) || switches[p.Name].names(found.image)) {
			byImage = p
		}
	}
	if byCommand != nil {
		return byCommand
	}
	return byImage
}

// withVersion adds the version from policy or the image.
func withVersion(in *Input, found search, p *compiled) choice {
	if p == nil {
		return choice{}
	}
	if version, ok := parseVersion(in.Switches[p.Name].Version); ok {
		return choice{p, version, VersionFromPolicy}
	}
	if version := p.imageVersion(p.versions, found.image); version.known() {
		return choice{p, version, VersionFromImage}
	}
	return choice{profile: p}
}

// imageVersion returns the version of c that rules read of the image's name, as far as it can be believed.
func (c *compiled) imageVersion(rules []versionRule, image image) version {
	for _, r := range rules {
		v, ok := r.read(image)
		if !ok {
			continue
		}
		closed := v
		closed.open = false
		if !c.believe.empty() && !c.believe.holds(closed) {
			return version{}
		}
		return v
	}
	return version{}
}

// beneath returns, of a profile that runs on another framework, that one's profile with its version: from policy, from the image, or
// implied by c's own version.
func (c *compiled) beneath(in *Input, found search, own version) choice {
	choice := withVersion(in, found, c.runs)
	if choice.version.known() {
		return choice
	}
	if version := c.runs.imageVersion(c.runsVersions, found.image); version.known() {
		choice.version, choice.source = version, VersionFromImage
	} else if own.known() {
		choice.version = climb(c.runsSteps, own)
	}
	return choice
}
