package doctor

import (
	"fmt"
	"slices"
	"strconv"
)

// Level is how much a finding matters.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Note    Level = "note"    // worth knowing; nothing has to be done
	Warning Level = "warning" // it works, but not as some expect
	Problem Level = "problem" // something does not work, or enforces less than it promises
)

// Levels lists the levels, the worst first.
func Levels() []Level { return []Level{Problem, Warning, Note, OK} }

// Finding is one thing that was found: an item of -o json.
type Finding struct {
	Check    string     `json:"check"` // the check that found it: stable, for tools
	Level    Level      `json:"level"`
	Summary  string     `json:"summary"`
	Evidence []Evidence `json:"evidence"`
	Remedy   string     `json:"remedy,omitempty"` // a command, or a change and its place
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

// newFinding makes a finding of a level. With and WithRemedy add evidence and the remedy.
func newFinding(level Level, format string, args ...any) Finding {
	return Finding{Level: level, Summary: fmt.Sprintf(format, args...), Evidence: []Evidence{}}
}

// With returns f with more evidence.
func (f Finding) With(object, field, value string) Finding {
	f.Evidence = append(slices.Clone(f.Evidence), Evidence{object, field, value})
	return f
}

// WithRemedy returns f with its remedy.
func (f Finding) WithRemedy(format string, args ...any) Finding {
	f.Remedy = fmt.Sprintf(format, args...)
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

func decimal[T int | int32 | int64](n T) string { return strconv.FormatInt(int64(n), 10) }
