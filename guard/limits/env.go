package limits

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// The names of the variables, in the order Env writes them.
const (
	VersionVariable    = "GPUSLICE_GUARD_VERSION"
	ContainersVariable = "GPUSLICE_GUARD_CONTAINERS"
	PolicyVariable     = "GPUSLICE_GUARD_POLICY"
	NodeVariable       = "GPUSLICE_GUARD_NODE"
)

// maxValue bounds the length of one variable. A pod of 128 GPU containers needs
// some 16 KiB.
const maxValue = 64 << 10

// ErrVersion is returned by FromEnv for a version it does not know.
var ErrVersion = errors.New("unknown version of the guard's limits")

// Variable is one environment variable.
type Variable struct{ Name, Value string }

// Env writes l as environment variables: the same variables in the same order
// for the same value. It does not validate; Validate does.
func (l Limits) Env() []Variable {
	containers := l.Containers
	if containers == nil {
		containers = []Container{}
	}
	return []Variable{
		{VersionVariable, strconv.Itoa(l.Version)},
		{ContainersVariable, compact(containers)},
		{PolicyVariable, compact(policyOf(l))},
		{NodeVariable, compact(l.Node)},
	}
}

// FromEnv reads the variables of Env. A setting that is absent takes its default,
// an unknown one is an error. All problems are reported, joined; a version that is
// not known is reported alone, as ErrVersion.
func FromEnv(lookup func(string) (string, bool)) (Limits, error) {
	l := Default()
	if err := readVersion(lookup, &l.Version); err != nil {
		return Limits{}, err
	}
	policy := policyOf(l)
	problems := []error{
		readJSON(lookup, ContainersVariable, &l.Containers),
		readJSON(lookup, PolicyVariable, &policy),
		readJSON(lookup, NodeVariable, &l.Node),
	}
	if err := errors.Join(problems...); err != nil {
		return Limits{}, err
	}
	policy.into(&l)
	for i := range l.Containers {
		l.Containers[i].complete()
	}
	if err := l.Validate(); err != nil {
		return Limits{}, err
	}
	return l, nil
}

func readVersion(lookup func(string) (string, bool), into *int) error {
	text, set := lookup(VersionVariable)
	if !set {
		return fmt.Errorf("read %s: not set; the guard runs only where the webhook injected it", VersionVariable)
	}
	version, err := strconv.Atoi(text)
	if err != nil || version < 1 {
		return fmt.Errorf("read %s: %.20q is not a version number", VersionVariable, text)
	}
	if version > Version {
		return fmt.Errorf("read %s: %w: got %d, this guard understands up to %d; use a guard image of the webhook's release",
			VersionVariable, ErrVersion, version, Version)
	}
	*into = version
	return nil
}

// readJSON decodes the variable into v. An unset variable leaves v as it is.
func readJSON(lookup func(string) (string, bool), name string, v any) error {
	text, set := lookup(name)
	if !set {
		return nil
	}
	if len(text) > maxValue {
		return fmt.Errorf("read %s: %d bytes, at most %d", name, len(text), maxValue)
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: text after the value", name)
	}
	return nil
}

// complete fills in omitted fields of a container.
func (c *Container) complete() {
	if c.LimitBytes == 0 {
		c.LimitBytes = c.SliceBytes
	}
	if c.GPUs == 0 {
		c.GPUs = 1
	}
}

// compact is v as JSON. The types of the contract hold nothing that can fail to
// encode.
func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode the guard's limits: %v", err))
	}
	return string(text)
}
