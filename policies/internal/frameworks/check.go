package frameworks

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/policies/internal/commandline"
)

// Names of labels are lower case; a shell can export names of variables.
var (
	namePattern    = regexp.MustCompile(`^[a-z][a-z0-9-]*[a-z0-9]$`)
	formulaPattern = regexp.MustCompile(`\{\{([^{}]*)\}\}`)
)

// check reports errors that decoding cannot see: names, formulas and references that do not exist.
func (ps *problems) check(p *Profile) {
	if !namePattern.MatchString(p.Name) || p.Name == None {
		ps.add("name", "%q is no name for a profile", p.Name)
	}
	for at, text := range map[string]string{"title": p.Title, "description": p.Description} {
		if text == "" {
			ps.add(at, "is required")
		}
	}
	if len(p.Match.Images)+len(p.Match.Commands) == 0 {
		ps.add("match", "names neither images nor commands")
	}
	for i, command := range p.Match.Commands {
		if strings.TrimSpace(command) == "" {
			ps.add(fmt.Sprintf("match.commands[%d]", i), "is empty")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Variables)) {
		ps.checkVariable("variables."+name, name, p.Variables[name])
	}
	for i, u := range p.Uncaps {
		if !commandline.IsVariable(u.Name) || u.Says == "" {
			ps.add(fmt.Sprintf("uncaps[%d]", i), "name and says are required")
		}
	}
	for i, r := range p.Rules {
		ps.checkRule(fmt.Sprintf("rules[%d]", i), p, r)
	}
	if r := p.Ranks; r != nil {
		ps.checkSettings("ranks", slices.Concat(r.Settings, r.Unless))
		if len(r.Settings) == 0 || r.Says == "" {
			ps.add("ranks", "settings and says are required")
		}
	}
	for i, a := range p.Arguments {
		ps.checkArgument(fmt.Sprintf("arguments[%d]", i), a)
	}
}

func (ps *problems) checkVariable(at, name string, v Variable) {
	for _, n := range append([]string{name}, v.Names...) {
		if !commandline.IsVariable(n) {
			ps.add(at, "%q is no name for a variable", n)
		}
	}
	if len(v.Names) > 0 && !slices.Contains(v.Names, name) {
		ps.add(at+".names", "leaves out %s itself", name)
	}
	if _, ok := readers[v.Reads]; v.Reads != "" && !ok {
		ps.add(at+".reads", "%q is none of %s", v.Reads, keys(readers))
	}
	for _, flag := range v.Flags {
		if !strings.HasPrefix(flag, "-") {
			ps.add(at+".flags", "%q does not begin with a dash", flag)
		}
	}
}

func (ps *problems) checkRule(at string, p *Profile, r Rule) {
	ps.checkViews(at+".when.views", r.When.Views)
	ps.checkSettings(at+".when", slices.Concat(r.When.Given, r.When.Unless))
	for i, s := range r.Set {
		here := fmt.Sprintf("%s.set[%d]", at, i)
		if _, ok := p.Variables[s.Name]; !ok {
			ps.add(here+".name", "%q is not among variables", s.Name)
		}
		if len(s.Parts) == 0 {
			ps.add(here+".parts", "is required")
		}
		for j, part := range s.Parts {
			ps.checkPart(fmt.Sprintf("%s.parts[%d]", here, j), p, part)
		}
	}
}

func (ps *problems) checkSettings(at string, settings []string) {
	for _, s := range settings {
		name, _, _ := strings.Cut(s, "=")
		if name = strings.TrimSuffix(name, "!"); !strings.HasPrefix(name, "-") && !commandline.IsVariable(name) {
			ps.add(at, "%q names neither an argument nor a variable", s)
		}
	}
}

func (ps *problems) checkPart(at string, p *Profile, part string) {
	for _, m := range formulaPattern.FindAllStringSubmatch(part, -1) {
		if _, ok := formulas[m[1]]; !ok {
			ps.add(at, "formula %q is none of %s", m[1], keys(formulas))
		}
		if m[1] == allocFormula && p.AllocConf == nil {
			ps.add(at, "formula %q needs allocConf", m[1])
		}
	}
	if strings.ContainsAny(formulaPattern.ReplaceAllString(part, ""), "{} \t\n") || part == "" {
		ps.add(at, "%q is empty, or has a space or a brace that belongs to no formula", part)
	}
}

func (ps *problems) checkArgument(at string, a Argument) {
	if !strings.HasPrefix(a.Flag, "--") || a.Default == "" {
		ps.add(at, "flag and default are required")
	}
	for i, command := range a.AppendTo {
		if len(strings.Fields(command)) == 0 {
			ps.add(fmt.Sprintf("%s.appendTo[%d]", at, i), "is empty")
		}
	}
	if _, ok := formulas[a.Most]; !ok {
		ps.add(at+".most", "formula %q is none of %s", a.Most, keys(formulas))
	}
	if len(a.Views) == 0 {
		ps.add(at+".views", "is required")
	}
	ps.checkViews(at+".views", a.Views)
}

func (ps *problems) checkViews(at string, views []View) {
	for _, v := range views {
		switch v {
		case ViewWhole, ViewLimitedFree, ViewSliced, ViewUnknown:
		default:
			ps.add(at, "%q is no view", v)
		}
	}
}
