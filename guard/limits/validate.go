package limits

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Bounds on accepted values, beside the bounds of each field.
const (
	maxContainers = 128
	maxGPUs       = 64
	maxBytes      = 1 << 50 // 1 PiB: a sum over a pod cannot overflow
	maxPath       = 1024
)

var (
	containerName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	driverVersion = regexp.MustCompile(`^[0-9]{1,4}(\.[0-9]{1,4}){0,3}$`)
)

// Validate returns every problem of l, joined, each with the field's path, or
// nil when the guard can enforce it.
func (l Limits) Validate() error {
	var p problems
	p.check(l.Version == Version, "version: got %d, want %d", l.Version, Version)
	l.validateContainers(&p)
	l.validatePolicy(&p)
	l.validateNode(&p)
	return errors.Join(p...)
}

type problems []error

func (p *problems) check(holds bool, format string, args ...any) {
	if !holds {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

func (l Limits) validateContainers(p *problems) {
	p.check(len(l.Containers) > 0, "containers: none; a guard needs at least one container with a slice")
	p.check(len(l.Containers) <= maxContainers, "containers: %d, at most %d", len(l.Containers), maxContainers)
	seen := map[string]bool{}
	for i, c := range l.Containers {
		at := fmt.Sprintf("containers[%d]", i)
		p.check(containerName.MatchString(c.Name), "%s.name: %.70q is not a container's name", at, c.Name)
		p.check(!seen[c.Name], "%s.name: %.70q is there twice", at, c.Name)
		seen[c.Name] = true
		p.check(c.SliceBytes > 0 && c.SliceBytes <= maxBytes, "%s.slice: %d is not between 1 and %d bytes", at, c.SliceBytes, int64(maxBytes))
		p.check(c.LimitBytes >= c.SliceBytes && c.LimitBytes <= maxBytes, "%s.limit: %d is not between the slice and %d bytes",
			at, c.LimitBytes, int64(maxBytes))
		p.check(c.GPUs >= 1 && c.GPUs <= maxGPUs, "%s.gpus: %d is not between 1 and %d", at, c.GPUs, maxGPUs)
	}
}

func (l Limits) validatePolicy(p *problems) {
	oneOf(p, "act", l.Act, ActAlways, ActPressure)
	oneOf(p, "terminate", l.Escalation, EscalationContainer, EscalationObserve)
	oneOf(p, "mpsTermination", l.MPSTermination, MPSTerminationObserve, MPSTerminationSignal)
	within(p, "warnPercent", l.WarnPercent, 1, 100)
	within(p, "pressurePercent", l.PressurePercent, 1, 100)
	within(p, "maxTerminations", l.MaxTerminations, 1, 1000)
	within(p, "grace", l.Grace, 0, time.Hour)
	within(p, "termGrace", l.TermGrace, 0, 10*time.Minute)
	within(p, "settle", l.Settle, 0, time.Hour)
	within(p, "terminationWindow", l.TerminationsWindow, time.Second, 24*time.Hour)
	within(p, "idleReport", l.IdleReport, 0, 30*24*time.Hour)
	within(p, "idleTerminate", l.IdleTerminate, 0, 30*24*time.Hour)
	p.check(l.IdleTerminate == 0 || l.IdleTerminate >= l.IdleReport, "idleTerminate: %s is shorter than idleReport (%s)",
		l.IdleTerminate, l.IdleReport)
	within(p, "interval", l.Interval, 20*time.Millisecond, 5*time.Second)
	within(p, "fastInterval", l.FastInterval, 20*time.Millisecond, 5*time.Second)
	p.check(l.FastInterval <= l.Interval, "fastInterval: %s is longer than interval (%s)", l.FastInterval, l.Interval)
}

func (l Limits) validateNode(p *problems) {
	absolute(p, "mpsPipeDirectory", l.MPSPipeDirectory)
	absolute(p, "mpsControl", l.MPSControl)
	within(p, "minDeviceBytes", l.MinDeviceBytes, 0, maxBytes)
	within(p, "maxDeviceBytes", l.MaxDeviceBytes, 0, maxBytes)
	p.check(l.MaxDeviceBytes == 0 || l.MinDeviceBytes <= l.MaxDeviceBytes,
		"minDeviceBytes: %d is more than maxDeviceBytes (%d)", l.MinDeviceBytes, l.MaxDeviceBytes)
	p.check(l.MinDriver == "" || driverVersion.MatchString(l.MinDriver),
		"minDriver: %.40q is not a driver version such as \"565.57.01\"", l.MinDriver)
	p.check(!l.ExpectMPS || l.MPSPipeDirectory != "", "expectMPS: needs mpsPipeDirectory")
	within(p, "metricsPort", l.MetricsPort, 0, 65535)
}

func oneOf[T ~string](p *problems, field string, got T, allowed ...T) {
	p.check(slices.Contains(allowed, got), "%s: %.40q is not one of %q", field, got, allowed)
}

func within[T cmp.Ordered](p *problems, field string, got, least, most T) {
	p.check(got >= least && got <= most, "%s: %v is not between %v and %v", field, got, least, most)
}

// absolute accepts an empty path. The kubelet expands $(NAME) in the value of a
// variable, so a path that contains it would not come back equal.
func absolute(p *problems, field, got string) {
	if got == "" {
		return
	}
	p.check(len(got) <= maxPath && path.IsAbs(got) && path.Clean(got) == got, "%s: %.80q is not a clean absolute path", field, got)
	p.check(!strings.ContainsAny(got, "$\x00\n") && strings.ToValidUTF8(got, "") == got,
		"%s: %.80q holds a character that a variable cannot carry", field, got)
}
