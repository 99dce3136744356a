package policies

import (
	"fmt"
	"strings"
)

// profileSearch is what a container shows: its image, and the words of its command line.
type profileSearch struct {
	image profileImage
	words []profileWord
}

// profileChoice is a profile with the version that was found for it; profile is nil when none was recognised.
type profileChoice struct {
	profile *profileCompiled
	version profileVersion
	source  string
}

// profileChoose returns the profile that applies: the one that the label or policy names, else the one whose command runs,
// else the one whose image it is. A framework that is asked for and does not exist is refused.
func profileChoose(in *ProfileInput, found profileSearch) (profileChoice, *ProfileRefusal) {
	if in.Framework == "" {
		return profileWithVersion(in, found, profileRecognise(profileTable, in.Switches, found)), nil
	}
	if strings.EqualFold(in.Framework, FrameworkNone) {
		return profileChoice{}, nil
	}
	p, rest := profileCalled(profileTable, strings.ToLower(in.Framework))
	if p == nil {
		return profileChoice{}, &ProfileRefusal{ProfileRefusedFramework, fmt.Sprintf("framework %q is not known; write one of %s, with -VERSION if wanted, or %s",
			profileShorten(in.Framework), strings.Join(FrameworkNames(), ", "), FrameworkNone)}
	}
	if rest == "" {
		return profileWithVersion(in, found, p), nil
	}
	version, ok := profileParseVersion(rest)
	if !ok {
		return profileChoice{}, &ProfileRefusal{ProfileRefusedFramework, fmt.Sprintf("framework %q: %q is no version; write for example %s-2.4",
			profileShorten(in.Framework), profileShorten(rest), p.Name)}
	}
	return profileChoice{p, version, ProfileVersionFromLabel}, nil
}

// profileCalled splits "pytorch-2.4" into the profile with the longest name that fits, and the version's text.
func profileCalled(table []*profileCompiled, text string) (*profileCompiled, string) {
	var found *profileCompiled
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

// profileRecognise returns the profile of what runs in the container, and nil when nothing is recognised. A server comes before
// the framework that it runs on, since images of the framework carry servers too.
func profileRecognise(table []*profileCompiled, switches map[string]ProfileSwitch, found profileSearch) *profileCompiled {
	var byImage, byCommand *profileCompiled
	for _, p := range table {
		if profileOutranks(p, byCommand) && profileRuns(p, found.words) {
			byCommand = p
		}
		if profileOutranks(p, byImage) && (profileAnyMatches(p.images, found.image) || switches[p.Name].names(found.image)) {
			byImage = p
		}
	}
	if byCommand != nil {
		return byCommand
	}
	return byImage
}

func profileOutranks(p, found *profileCompiled) bool {
	return found == nil || found.runs == nil && p.runs != nil
}

func profileRuns(p *profileCompiled, words []profileWord) bool {
	for _, command := range p.commands {
		if profileHasCommand(words, command) {
			return true
		}
	}
	return false
}

// profileWithVersion adds the version that policy or the image tells.
func profileWithVersion(in *ProfileInput, found profileSearch, p *profileCompiled) profileChoice {
	if p == nil {
		return profileChoice{}
	}
	if version, ok := profileParseVersion(in.Switches[p.Name].Version); ok {
		return profileChoice{p, version, ProfileVersionFromPolicy}
	}
	if version := p.imageVersion(found.image); version.known() {
		return profileChoice{p, version, ProfileVersionFromImage}
	}
	return profileChoice{profile: p}
}

// imageVersion returns the version that the image tells, as far as it can be believed.
func (c *profileCompiled) imageVersion(image profileImage) profileVersion {
	return c.believed(profileReadVersion(c.versions, image))
}

func (c *profileCompiled) believed(v profileVersion) profileVersion {
	closed := v
	closed.open = false
	if !c.believe.empty() && !c.believe.holds(closed) {
		return profileVersion{}
	}
	return v
}

// beneath returns the profile of the framework that c runs on, with its version: as policy says, as the image says, or as c's own
// version implies. The profile is nil where c stands on its own.
func (c *profileCompiled) beneath(in *ProfileInput, found profileSearch, own profileVersion) profileChoice {
	choice := profileWithVersion(in, found, c.runs)
	if c.runs == nil || choice.version.known() {
		return choice
	}
	if version := c.runs.believed(profileReadVersion(c.runsVersions, found.image)); version.known() {
		choice.version, choice.source = version, ProfileVersionFromImage
	} else if own.known() {
		choice.version = profileClimb(c.runsSteps, own)
	}
	return choice
}
