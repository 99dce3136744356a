package config

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/internal/document"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
)

// Bounds on policy documents, in bytes of their text, which are checked before it is parsed. A tenant's is smaller since anyone
// who may write ConfigMaps in a namespace may have one, and every replica keeps them all.
const (
	MaxDocument       = document.MaxBytes
	MaxTenantDocument = 16 << 10
)

// accepted describes a policy document.
const accepted = "keys and values that begin with apiVersion: " + APIVersion

// Parse reads a policy document: strict and case-sensitive, defaults filled in, every problem reported with its path
// (up to 64 of them). name is the document's source ("namespace/configmap"). A document with problems gives no Policy.
// Documents of more than MaxDocument, and those with anchors or aliases, are rejected before they are decoded.
func Parse(name string, data []byte) (*Policy, field.ErrorList) {
	return parseDocument(name, data, func(p *Policy) field.ErrorList {
		p.setDefaults()
		return p.validate()
	})
}

// parseDocument reads a document; check completes the decoded policy and reports problems of its values.
func parseDocument(name string, data []byte, check func(*Policy) field.ErrorList) (*Policy, field.ErrorList) {
	root, problem := document.Read(data, accepted)
	if problem != nil {
		return nil, field.ErrorList{problem}
	}
	p := &Policy{}
	found := document.Decode(root, p)
	p.Name = name
	problems := slices.Clone(found)
	for _, e := range check(p) {
		if !told(found, e.Field) {
			problems = append(problems, e)
		}
	}
	if more := len(problems) - document.MaxProblems; more > 0 {
		problems = append(problems[:document.MaxProblems], document.Problem(fmt.Sprintf("and %d more problems", more)))
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return p, nil
}

// told reports whether a problem of this field, of a part of it or of its parent was reported already: a value left out
// for that reason is not missing.
func told(problems field.ErrorList, path string) bool {
	return slices.ContainsFunc(problems, func(e *field.Error) bool {
		return within(e.Field, path) || within(path, e.Field)
	})
}

// within reports whether inner is outer or a part of it.
func within(outer, inner string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// setDefaults fills in omitted fields. Reserve and allowance stay open: they depend on the device and the pod.
func (p *Policy) setDefaults() {
	defaultTo(&p.Mode, defaultMode)
	defaultTo(&p.EnforcementMode, defaultEnforcement)
	defaultTo(&p.Templates, defaultTemplates)
	defaultTo(&p.MIG.Rounding, defaultMIGRounding)
	defaultTo(&p.MPS.PipeDirectory, defaultPipeDirectory)
	defaultTo(&p.MPS.LogDirectory, defaultLogDirectory)
	defaultTo(&p.Guard.Grace, metav1.Duration{Duration: defaultGuardGrace})
	if p.Strategies == nil {
		p.Strategies = strategies.Default()
	}
	if p.DependsOnClaims() {
		defaultTo(&p.Claims, modes.ClaimsDeny)
	}
	defaultTo(&p.Claims, modes.ClaimsCount)
}

// DependsOnClaims reports whether a claim of a GPU that no slice bounds reduces something that policy allocates: a
// quota, or memory of devices.
func (p *Policy) DependsOnClaims() bool {
	return p.Quota.Limited() || slices.ContainsFunc(strategies.NamesWith(func(s *strategies.Strategy) bool { return s.Claims }), p.Allows)
}

func defaultTo[T comparable](setting *T, value T) {
	var zero T
	if *setting == zero {
		*setting = value
	}
}
