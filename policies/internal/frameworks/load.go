package frameworks

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

//go:embed profiles/*.yaml
var files embed.FS

// The embedded files, decoded once.
var table, pid1 = mustLoad(files)

// mustLoad panics on a broken file: the files are constants of the build, as regular expressions are.
func mustLoad(files fs.FS) ([]*compiled, initTable) {
	table, inits, err := load(files)
	if err != nil {
		panic(err)
	}
	return table, inits
}

// pid1File lists images instead of describing a framework.
const pid1File = "pid1.yaml"

// load decodes every profile of a file tree and returns them sorted by name, with all mistakes joined.
func load(files fs.FS) ([]*compiled, initTable, error) {
	names, err := fs.Glob(files, "profiles/*.yaml")
	if err != nil {
		return nil, initTable{}, fmt.Errorf("list profiles: %w", err)
	}
	var table []*compiled
	var inits initTable
	var problems []error
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			problems = append(problems, fmt.Errorf("read %s: %w", name, err))
			continue
		}
		if path.Base(name) == pid1File {
			inits, err = parseInits(text)
		} else {
			var p *compiled
			p, err = parse(text)
			table = append(table, p)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	if len(problems) == 0 {
		problems = append(problems, link(table))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, initTable{}, err
	}
	return table, inits, nil
}

// decode decodes YAML strictly: a key that is unknown, repeated or in other case is an error with its path.
func decode(text []byte, into any) error {
	js, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return fmt.Errorf("decode YAML: %w", err)
	}
	strict, err := kjson.UnmarshalStrict(js, into)
	return errors.Join(append(strict, err)...)
}

// parse decodes one profile, checks it and compiles its texts.
func parse(text []byte) (*compiled, error) {
	c := &compiled{}
	if err := decode(text, &c.Profile); err != nil {
		return nil, err
	}
	var problems problems
	problems.check(&c.Profile)
	c.images = problems.patterns("match.images", c.Match.Images)
	for _, command := range c.Match.Commands {
		c.commands = append(c.commands, strings.Fields(command))
	}
	c.versions = problems.versionRules("versions", c.Versions)
	if c.Believe != nil {
		c.believe = problems.bounds("believe", *c.Believe)
	}
	if c.Shim != nil {
		c.shim = problems.bounds("shim", *c.Shim)
	}
	if c.Runs != nil {
		c.runsVersions = problems.versionRules("runs.versions", c.Runs.Versions)
		c.runsSteps = problems.steps("runs.steps", c.Runs.Steps)
	}
	for i, r := range c.Rules {
		c.ruleBounds = append(c.ruleBounds, problems.bounds(fmt.Sprintf("rules[%d].when", i), r.When.Range))
	}
	if c.AllocConf != nil {
		c.conf = problems.allocKeys("allocConf.keys", c.AllocConf.Keys)
		c.confOldest = oldest(c.conf)
	}
	return c, errors.Join(problems...)
}

// link sorts the table and joins each profile with the one beneath it.
func link(table []*compiled) error {
	slices.SortFunc(table, func(a, b *compiled) int { return strings.Compare(a.Name, b.Name) })
	for i, p := range table {
		if i > 0 && table[i-1].Name == p.Name {
			return fmt.Errorf("profile %s is described twice", p.Name)
		}
		if p.Runs == nil {
			continue
		}
		if p.runs = named(table, p.Runs.Profile); p.runs == nil || p.runs.Runs != nil {
			return fmt.Errorf("profile %s: runs.profile: %q is no profile that stands on its own", p.Name, p.Runs.Profile)
		}
	}
	return nil
}

// Names returns the names of the built-in profiles, sorted: the first words of framework labels.
func Names() []string {
	names := make([]string, 0, len(table))
	for _, p := range table {
		names = append(names, p.Name)
	}
	return names
}

// compiled is a profile with its texts parsed.
type compiled struct {
	Profile
	images       []pattern
	commands     [][]string
	versions     []versionRule
	believe      bounds
	shim         bounds
	runs         *compiled
	runsVersions []versionRule
	runsSteps    []step
	ruleBounds   []bounds
	conf         map[string]allocEntry
	confOldest   version
}

func named(table []*compiled, name string) *compiled {
	for _, p := range table {
		if p.Name == name {
			return p
		}
	}
	return nil
}
