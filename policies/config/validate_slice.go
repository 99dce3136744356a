package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/document"
	"github.com/gpuslice/gpuslice/policies/quota"
)

const maxCompute = 100 // percent

// validateSlices checks the default slice, the classes and the limits.
func (p *Policy) validateSlices(e *problems) {
	if p.DefaultSlice != nil {
		p.validateDefaultSlice(e, field.NewPath("defaultSlice"))
	}
	at := field.NewPath("classes")
	atMost(e, at, len(p.Classes), maxClasses)
	for _, name := range slices.Sorted(maps.Keys(p.Classes)) {
		path, class := at.Key(document.Shorten(name)), p.Classes[name]
		if name == api.ClassReplica {
			e.invalid(path, name, "the class %q is always there: whatever one replica of the pool holds", name)
		}
		e.each(path, name, validation.IsDNS1123Label(name))
		if class.Class != "" {
			e.invalid(path.Child("class"), class.Class, "a class does not refer to another; accepted: memory or fraction")
			class.Class = ""
		}
		class.validate(e, path, "memory and fraction")
	}
	validateCharge(e, field.NewPath("limits", "perContainer"), p.Limits.PerContainer)
	validateCharge(e, field.NewPath("limits", "perPod"), p.Limits.PerPod)
	if most := p.Limits.MemoryLimit; most != 0 && most < p.Limits.MinMemory {
		e.invalid(field.NewPath("limits", "memoryLimit"), most.String(),
			"less than minMemory (%s); accepted: as much or more", p.Limits.MinMemory)
	}
	if ratio := p.Limits.MaxLimitRequestRatio; ratio != 0 {
		between(e, field.NewPath("limits", "maxLimitRequestRatio"), ratio, 1, 1000)
	}
}

func (p *Policy) validateDefaultSlice(e *problems, at *field.Path) {
	s := *p.DefaultSlice
	if _, ok := p.Classes[s.Class]; s.Class != "" && s.Class != api.ClassReplica && !ok {
		e.invalid(at.Child("class"), s.Class, "no such class; accepted: %s",
			strings.Join(append(slices.Sorted(maps.Keys(p.Classes)), api.ClassReplica), ", "))
	}
	s.validate(e, at, "memory, fraction and class")
}

// validate checks a slice. sizes are the ways to say how large it is, of which it has exactly one.
func (s SliceSpec) validate(e *problems, at *field.Path, sizes string) {
	given := 0
	for _, said := range []bool{s.Memory != 0, !s.Fraction.Zero(), s.Class != ""} {
		if said {
			given++
		}
	}
	if given != 1 {
		e.add(field.Required(at, fmt.Sprintf("exactly one of %s, and it has %d", sizes, given)))
	}
	if s.MemoryLimit != 0 && s.MemoryLimit < s.Memory {
		e.invalid(at.Child("memoryLimit"), s.MemoryLimit.String(), "less than memory (%s); accepted: as much or more", s.Memory)
	}
	if s.Compute != 0 {
		between(e, at.Child("compute"), s.Compute, 1, maxCompute)
	}
	if s.Processes != 0 {
		between(e, at.Child("processes"), s.Processes, 1, api.MaxProcesses)
	}
}

func validateCharge(e *problems, at *field.Path, c quota.Charge) {
	if c.Slices != 0 {
		between(e, at.Child("slices"), c.Slices, 1, maxCount)
	}
	if c.GPUs != 0 {
		between(e, at.Child("gpus"), c.GPUs, 1, maxCount)
	}
}
