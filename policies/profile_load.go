package policies

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

//go:embed profiles/*.yaml
var profileFiles embed.FS

// The embedded files, decoded once. They are constants: a mistake in one is found by a test, and leaves the tables empty here.
var profileTable, profilePID1, profileLoadError = profileLoad(profileFiles)

// profilePID1File lists images instead of describing a framework.
const profilePID1File = "pid1.yaml"

// profileCompiled is a profile with its texts parsed.
type profileCompiled struct {
	Profile
	images       []profilePattern
	commands     [][]string
	versions     []profileVersionRule
	believe      profileBounds
	runs         *profileCompiled
	runsVersions []profileVersionRule
	runsSteps    []profileStep
	ruleBounds   []profileBounds
	conf         map[string]profileAllocEntry
	confOldest   profileVersion
}

// profileLoad decodes every profile of a file tree and returns them sorted by name, with all mistakes joined.
func profileLoad(files fs.FS) ([]*profileCompiled, profileInits, error) {
	names, err := fs.Glob(files, "profiles/*.yaml")
	if err != nil {
		return nil, profileInits{}, fmt.Errorf("list profiles: %w", err)
	}
	var table []*profileCompiled
	var inits profileInits
	var problems []error
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			problems = append(problems, fmt.Errorf("read %s: %w", name, err))
			continue
		}
		if path.Base(name) == profilePID1File {
			inits, err = profileParseInits(text)
		} else {
			var p *profileCompiled
			p, err = profileParse(text)
			table = append(table, p)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	if len(problems) == 0 {
		problems = append(problems, profileLink(table))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, profileInits{}, err
	}
	return table, inits, nil
}

// profileDecode decodes YAML strictly: a key that is unknown, repeated or in other case is an error with its path.
func profileDecode(text []byte, into any) error {
	js, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return fmt.Errorf("decode YAML: %w", err)
	}
	strict, err := kjson.UnmarshalStrict(js, into)
	return errors.Join(append(strict, err)...)
}

// profileParse decodes one profile, checks it and compiles its texts.
func profileParse(text []byte) (*profileCompiled, error) {
	c := &profileCompiled{}
	if err := profileDecode(text, &c.Profile); err != nil {
		return nil, err
	}
	var problems profileProblems
	problems.check(&c.Profile)
	c.images = problems.patterns("match.images", c.Match.Images)
	for _, command := range c.Match.Commands {
		c.commands = append(c.commands, strings.Fields(command))
	}
	c.versions = problems.versionRules("versions", c.Versions)
	if c.Believe != nil {
		c.believe = problems.bounds("believe", *c.Believe)
	}
	if c.Runs != nil {
		c.runsVersions = problems.versionRules("runs.versions", c.Runs.Versions)
		c.runsSteps = problems.steps("runs.steps", c.Runs.Steps)
	}
	for i, r := range c.Rules {
		c.ruleBounds = append(c.ruleBounds, problems.bounds(fmt.Sprintf("rules[%d].when", i), r.When.ProfileRange))
	}
	if c.AllocConf != nil {
		c.conf = problems.allocKeys("allocConf.keys", c.AllocConf.Keys)
		c.confOldest = profileOldest(c.conf)
	}
	return c, errors.Join(problems...)
}

// profileLink sorts the table and joins each profile with the one beneath it.
func profileLink(table []*profileCompiled) error {
	slices.SortFunc(table, func(a, b *profileCompiled) int { return strings.Compare(a.Name, b.Name) })
	for i, p := range table {
		if i > 0 && table[i-1].Name == p.Name {
			return fmt.Errorf("profile %s is described twice", p.Name)
		}
		if p.Runs == nil {
			continue
		}
		if p.runs = profileNamed(table, p.Runs.Profile); p.runs == nil || p.runs.Runs != nil {
			return fmt.Errorf("profile %s: runs.profile: %q is no profile that stands on its own", p.Name, p.Runs.Profile)
		}
	}
	return nil
}

func profileNamed(table []*profileCompiled, name string) *profileCompiled {
	for _, p := range table {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func profileVariableNames(table []*profileCompiled) []string {
	var names []string
	for _, p := range table {
		for name := range p.Variables {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// profileProblems gathers what is wrong in one file, each with its path.
type profileProblems []error

func (ps *profileProblems) add(at, format string, args ...any) {
	*ps = append(*ps, fmt.Errorf("%s: "+format, append([]any{at}, args...)...))
}

func (ps *profileProblems) patterns(at string, texts []string) []profilePattern {
	var all []profilePattern
	for i, text := range texts {
		p, err := profileCompilePattern(text)
		if err != nil {
			ps.add(fmt.Sprintf("%s[%d]", at, i), "%w", err)
		}
		all = append(all, p)
	}
	return all
}

func (ps *profileProblems) version(at, text string) profileVersion {
	if text == "" {
		return profileVersion{}
	}
	v, ok := profileParseVersion(text)
	if !ok {
		ps.add(at, "%q is no version", text)
	}
	return v
}

func (ps *profileProblems) bounds(at string, r ProfileRange) profileBounds {
	return profileBounds{from: ps.version(at+".from", r.From), below: ps.version(at+".below", r.Below)}
}

func (ps *profileProblems) steps(at string, steps []ProfileStep) []profileStep {
	var all []profileStep
	for i, s := range steps {
		here := fmt.Sprintf("%s[%d]", at, i)
		step := profileStep{from: ps.version(here+".from", s.From), is: ps.version(here+".is", s.Is)}
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

func (ps *profileProblems) pattern(at, text string) *regexp.Regexp {
	if text == "" {
		return nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		ps.add(at, "%w", err)
	}
	return re
}

func (ps *profileProblems) versionRules(at string, rules []ProfileVersionRule) []profileVersionRule {
	var all []profileVersionRule
	for i, r := range rules {
		here := fmt.Sprintf("%s[%d]", at, i)
		if len(r.Images) == 0 {
			ps.add(here+".images", "is required")
		}
		if r.Tag != "" && r.Repository != "" {
			ps.add(here, "tag and repository exclude each other")
		}
		all = append(all, profileVersionRule{
			images:     ps.patterns(here+".images", r.Images),
			tag:        ps.pattern(here+".tag", r.Tag),
			repository: ps.pattern(here+".repository", r.Repository),
			steps:      ps.steps(here+".steps", r.Steps),
		})
	}
	return all
}
