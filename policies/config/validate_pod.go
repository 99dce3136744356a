package config

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
)

const (
	maxUser        = 1<<31 - 1
	maxTolerations = 64
)

func validateMPS(e *problems, at *field.Path, m strategies.MPSSpec) {
	absolute(e, at.Child("pipeDirectory"), m.PipeDirectory)
	absolute(e, at.Child("logDirectory"), m.LogDirectory)
	if m.ShmDirectory != "" {
		absolute(e, at.Child("shmDirectory"), m.ShmDirectory)
	}
	if m.PipeDirectory == m.LogDirectory {
		e.invalid(at.Child("logDirectory"), m.LogDirectory, "the same as pipeDirectory; a daemon needs two")
	}
	for i, user := range m.Users {
		between(e, at.Child("users").Index(i), user, 0, maxUser)
	}
	distinct(e, at.Child("users"), m.Users)
	for i, domain := range m.TrustDomains {
		if domain == "" {
			e.add(field.Required(at.Child("trustDomains").Index(i), "a trust domain as pools name it"))
		}
		e.each(at.Child("trustDomains").Index(i), domain, validation.IsValidLabelValue(domain))
	}
	distinct(e, at.Child("trustDomains"), m.TrustDomains)
}

// validate holds the guard's settings to the bounds that the guard itself accepts (package guard/limits).
func (g guardSpec) validate(e *problems, at *field.Path) {
	optional(e, at.Child("mode"), g.Mode, modes.GuardAuto, modes.GuardSidecar, modes.GuardAgent)
	optional(e, at.Child("act"), g.Act, string(limits.ActAlways), string(limits.ActPressure))
	optional(e, at.Child("access"), g.Access, modes.AccessAuto, modes.AccessEnv, modes.AccessVolume, modes.AccessCDI)
	optional(e, at.Child("mpsTermination"), g.MPSTermination, string(limits.MPSTerminationObserve), string(limits.MPSTerminationSignal))
	subdomain(e, at.Child("runtimeClassName"), g.RuntimeClassName)
	lasting(e, at.Child("grace"), g.Grace, time.Millisecond, time.Hour)
	lasting(e, at.Child("termGrace"), g.TermGrace, time.Millisecond, 10*time.Minute)
	lasting(e, at.Child("terminationWindow"), g.TerminationWindow, time.Second, 24*time.Hour)
	for _, err := range frameworks.PatternErrors(at.Child("initImages"), g.InitImages) {
		e.add(err)
	}
	if g.MaxTerminations != 0 {
		between(e, at.Child("maxTerminations"), g.MaxTerminations, 1, 1000)
	}
	if g.MetricsPort != 0 {
		between(e, at.Child("metricsPort"), g.MetricsPort, 1, 65535)
	}
}

func (i idleSpec) validate(e *problems, at *field.Path) {
	const longest = 30 * 24 * time.Hour
	lasting(e, at.Child("report"), i.Report, time.Second, longest)
	lasting(e, at.Child("terminate"), i.Terminate, time.Second, longest)
	if i.Terminate.Duration > 0 && i.Terminate.Duration < i.Report.Duration {
		e.add(field.Invalid(at.Child("terminate"), i.Terminate.Duration.String(),
			fmt.Sprintf("shorter than idle.report (%s): nothing is terminated before it was reported", i.Report.Duration)))
	}
}

func (p podSpec) validate(e *problems, at *field.Path) {
	subdomain(e, at.Child("priorityClassName"), p.PriorityClassName)
	subdomain(e, at.Child("schedulerName"), p.SchedulerName)
	subdomain(e, at.Child("runtimeClassName"), p.RuntimeClassName)
	if atMost(e, at.Child("tolerations"), len(p.Tolerations), maxTolerations) {
		return
	}
	for i, t := range p.Tolerations {
		validateToleration(e, at.Child("tolerations").Index(i), t)
	}
}

// optional checks a word where one is written.
func optional(e *problems, at *field.Path, value string, accepted ...string) {
	if value != "" {
		oneOf(e, at, value, accepted)
	}
}

// subdomain checks an object's name where one is written.
func subdomain(e *problems, at *field.Path, name string) {
	if name != "" {
		e.each(at, name, validation.IsDNS1123Subdomain(name))
	}
}

// lasting checks a duration where one is written.
func lasting(e *problems, at *field.Path, d metav1.Duration, least, most time.Duration) {
	if d.Duration != 0 && (d.Duration < least || d.Duration > most) {
		e.add(field.Invalid(at, d.Duration.String(), fmt.Sprintf("accepted: %s to %s", least, most)))
	}
}
