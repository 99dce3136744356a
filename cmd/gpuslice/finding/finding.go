package finding

import (
	"fmt"
	"slices"
)

// Level is how much a finding matters.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Note    Level = "note"    // worth knowing; nothing has to be done
	Warning Level = "warning" // it works, and somebody will be surprised
	Problem Level = "problem" // something does not work, or holds less than it says
)

// Levels lists the levels, the worst first.
func Levels() []Level { return []Level{Problem, Warning, Note, OK} }

// Finding is one thing that was found out.
type Finding struct {
	Check    string     `json:"check"` // who found it: stable, for tools
	Level    Level      `json:"level"`
	What     string     `json:"what"`
	Evidence []Evidence `json:"evidence"`
	Mend     string     `json:"mend,omitempty"` // a command, or what to change where
}

// Evidence is a field of an object that the finding rests on.
type Evidence struct {
	Object string `json:"object"`          // "node/n1", "daemonset/gpu-operator/nvidia-device-plugin-daemonset"
	Field  string `json:"field,omitempty"` // "" where the object itself is the evidence
	Value  string `json:"value,omitempty"`
}

// String is one line for people.
func (e Evidence) String() string {
	switch {
	case e.Field == "" && e.Value == "":
		return e.Object
	case e.Field == "":
		return e.Object + ": " + e.Value
	}
	return fmt.Sprintf("%s %s: %s", e.Object, e.Field, e.Value)
}

// New makes a finding of a level. Evidence and Mend are added by With and MendBy.
func New(level Level, format string, args ...any) Finding {
	return Finding{Level: level, What: fmt.Sprintf(format, args...), Evidence: []Evidence{}}
}

// With returns f with more evidence.
func (f Finding) With(object, field, value string) Finding {
	f.Evidence = append(slices.Clone(f.Evidence), Evidence{object, field, value})
	return f
}

// MendBy returns f with what mends it.
func (f Finding) MendBy(format string, args ...any) Finding {
	f.Mend = fmt.Sprintf(format, args...)
	return f
}

// Worst is the level of the worst finding; OK where there is none.
func Worst(all []Finding) Level {
	for _, level := range Levels() {
		if slices.ContainsFunc(all, func(f Finding) bool { return f.Level == level }) {
			return level
		}
	}
	return OK
}
