package config

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/document"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/spellings"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
)

// Bounds on the content of one document.
const (
	maxNames     = 1024 // namespaces
	maxClasses   = 64
	maxVariables = 64
	maxPoolSpecs = 256
	maxCount     = 1_000_000 // slices or GPUs of a limit
	maxEnvText   = 4096
)

// problems gathers the errors of a policy.
type problems struct{ field.ErrorList }

func (e *problems) add(err *field.Error) { e.ErrorList = append(e.ErrorList, err) }

func (e *problems) invalid(at *field.Path, value string, format string, args ...any) {
	e.add(field.Invalid(at, document.Shorten(value), fmt.Sprintf(format, args...)))
}

// each adds the problems that a check of Kubernetes' own finds in a value.
func (e *problems) each(at *field.Path, value string, found []string) {
	for _, text := range found {
		e.invalid(at, value, "%s", text)
	}
}

// oneOf rejects a value that is not among those accepted.
func oneOf[T ~string](e *problems, at *field.Path, value T, accepted []T) {
	if !slices.Contains(accepted, value) {
		e.add(field.NotSupported(at, T(document.Shorten(string(value))), accepted))
	}
}

// between rejects a number out of range.
func between[T ~int | ~int64](e *problems, at *field.Path, n, least, most T) {
	if n < least || n > most {
		e.add(field.Invalid(at, n, fmt.Sprintf("accepted: %v to %v", least, most)))
	}
}

// distinct rejects values that stand twice in a list.
func distinct[T comparable](e *problems, at *field.Path, values []T) {
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			e.add(field.Duplicate(at.Index(i), v))
		}
	}
}

// atMost rejects a list that is too long, and reports whether it did.
func atMost(e *problems, at *field.Path, n, most int) bool {
	if n > most {
		e.add(field.TooMany(at, n, most))
	}
	return n > most
}

// validate returns every problem of a policy whose defaults are filled in.
func (p *Policy) validate() field.ErrorList {
	e := &problems{}
	p.validateHead(e)
	if p.Namespaces != nil {
		p.Namespaces.validate(e, field.NewPath("namespaces"))
	}
	oneOf(e, field.NewPath("mode"), p.Mode, modes.All())
	oneOf(e, field.NewPath("enforcementMode"), p.EnforcementMode, enforcementModes())
	oneOf(e, field.NewPath("templates"), p.Templates, []modes.TemplatesMode{modes.TemplatesOff, modes.TemplatesCheck, modes.TemplatesRewrite})
	oneOf(e, field.NewPath("claims"), p.Claims, modes.AllClaims())
	p.validateDeviceClasses(e, field.NewPath("deviceClasses"))
	p.validateStrategies(e, field.NewPath("strategies"))
	p.validateSlices(e)
	for i, name := range p.Accept {
		oneOf(e, field.NewPath("accept").Index(i), name, spellings.Names())
	}
	distinct(e, field.NewPath("accept"), p.Accept)
	for name := range p.MemoryUnits {
		oneOf(e, field.NewPath("memoryUnits").Key(name), name, spellings.Units())
	}
	p.MinimumEnforcement.validate(e, field.NewPath("minimumEnforcement"))
	p.validateFrameworks(e)
	p.validateEnv(e, field.NewPath("env"))
	e.ErrorList = append(e.ErrorList, validateQuota(field.NewPath("quota"), p.Quota)...)
	p.validatePools(e, field.NewPath("pools"))
	validateMPS(e, field.NewPath("mps"), p.MPS)
	oneOf(e, field.NewPath("mig", "rounding"), p.MIG.Rounding, modes.AllMIGRoundings())
	p.Guard.validate(e, field.NewPath("guard"))
	p.Idle.validate(e, field.NewPath("idle"))
	p.Pod.validate(e, field.NewPath("pod"))
	return e.ErrorList
}

func enforcementModes() []api.EnforcementMode {
	return []api.EnforcementMode{api.EnforceAudit, api.EnforceWarn, api.EnforceFull}
}

func (p *Policy) validateHead(e *problems) {
	if p.APIVersion == "" {
		e.add(field.Required(field.NewPath("apiVersion"), "this build reads "+APIVersion))
	} else {
		oneOf(e, field.NewPath("apiVersion"), p.APIVersion, []string{APIVersion})
	}
	if p.Kind != "" {
		oneOf(e, field.NewPath("kind"), p.Kind, []string{"Policy"})
	}
}

func (m *NamespaceMatch) validate(e *problems, at *field.Path) {
	selects := m.Selector != nil && len(m.Selector.MatchLabels)+len(m.Selector.MatchExpressions) > 0
	if len(m.Names) == 0 && !selects {
		e.add(field.Required(at, "names, or a selector that is not empty; the cluster's default policy has no namespaces at all"))
	}
	if m.Selector != nil && !selects && len(m.Names) > 0 {
		e.add(field.Required(at.Child("selector"), "matchLabels or matchExpressions; an empty selector would match every namespace"))
	}
	if m.Selector != nil {
		e.ErrorList = append(e.ErrorList,
			metav1validation.ValidateLabelSelector(m.Selector, metav1validation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
	}
	if atMost(e, at.Child("names"), len(m.Names), maxNames) {
		return
	}
	for i, name := range m.Names {
		e.each(at.Child("names").Index(i), name, validation.IsDNS1123Label(name))
	}
	distinct(e, at.Child("names"), m.Names)
}

func (p *Policy) validateDeviceClasses(e *problems, at *field.Path) {
	if atMost(e, at, len(p.DeviceClasses), maxNames) {
		return
	}
	for i, name := range p.DeviceClasses {
		e.each(at.Index(i), name, validation.IsDNS1123Subdomain(name))
	}
	distinct(e, at, p.DeviceClasses)
}

func (p *Policy) validateStrategies(e *problems, at *field.Path) {
	if len(p.Strategies) == 0 {
		e.add(field.Required(at, fmt.Sprintf("at least one of %v; leave the key out for %v", strategies.Names(), strategies.Default())))
	}
	for i, name := range p.Strategies {
		oneOf(e, at.Index(i), name, strategies.Names())
	}
	distinct(e, at, p.Strategies)
}

func (p *Policy) validateFrameworks(e *problems) {
	at := field.NewPath("frameworks")
	for _, name := range slices.Sorted(maps.Keys(p.Frameworks)) {
		e.ErrorList = append(e.ErrorList, frameworks.SwitchErrors(at.Key(document.Shorten(name)), name, p.Frameworks[name])...)
	}
	if p.DefaultFramework == "" || strings.EqualFold(p.DefaultFramework, frameworks.None) {
		return
	}
	if !frameworks.Recognised(p.DefaultFramework) {
		e.invalid(field.NewPath("defaultFramework"), p.DefaultFramework, "accepted: one of %s, with -VERSION if wanted, or %s",
			strings.Join(frameworks.Names(), ", "), frameworks.None)
	}
}

var placeholderText = regexp.MustCompile(`\{\{[^{}]*\}\}`)

func placeholders() []string { return []string{"{{memoryBytes}}", "{{memoryMiB}}", "{{fraction}}"} }

func (p *Policy) validateEnv(e *problems, at *field.Path) {
	if atMost(e, at, len(p.Env), maxVariables) {
		return
	}
	var names []string
	for i, v := range p.Env {
		v.validate(e, at.Index(i))
		names = append(names, v.Name)
	}
	distinct(e, at, names)
}

func (v envSpec) validate(e *problems, at *field.Path) {
	name, value := at.Child("name"), at.Child("value")
	switch {
	case v.Name == "":
		e.add(field.Required(name, "a variable's name, such as TEAM_GPU_MEMORY"))
	case v.Name == "LD_PRELOAD", v.Name == nvidia.EnvVisibleDevices, v.Name == nvidia.EnvDriverCapabilities:
		e.invalid(name, v.Name, "decides which libraries or devices a container gets; policy does not set it")
	case nvidia.IsOwnVariable(v.Name):
		e.invalid(name, v.Name, "gpuslice writes the variables that begin with %s itself", nvidia.OwnPrefixes)
	default:
		e.each(name, v.Name, validation.IsCIdentifier(v.Name))
	}
	for _, found := range placeholderText.FindAllString(v.Value, -1) {
		oneOf(e, value, found, placeholders())
	}
	switch rest := placeholderText.ReplaceAllString(v.Value, ""); {
	case strings.Contains(rest, "{{"), strings.Contains(rest, "}}"):
		e.invalid(value, v.Value, "braces that belong to no placeholder; accepted: %s", strings.Join(placeholders(), ", "))
	case strings.Contains(v.Value, "$("):
		e.invalid(value, v.Value, "$( is not accepted: the kubelet would put another variable of the pod in its place")
	case len(v.Value) > maxEnvText:
		e.add(field.TooLong(value, "", maxEnvText))
	case strings.ContainsAny(v.Value, "\x00\n\r"):
		e.invalid(value, v.Value, "accepted: one line of text")
	}
}

// absolute rejects any value but a clean absolute path below the root.
func absolute(e *problems, at *field.Path, dir string) {
	if !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" || len(dir) > 512 || strings.ContainsAny(dir, ":\x00\n") {
		e.invalid(at, dir, `accepted: an absolute path without "..", "//", ":" or a slash at its end, such as %q`, defaultPipeDirectory)
	}
}
