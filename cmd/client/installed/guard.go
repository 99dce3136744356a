package installed

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/config"
)

// The guard's resources unless an installation sets others.
const (
	GuardCPU    = "20m"
	GuardMemory = "64Mi"
)

// Guard is how a webhook's Deployment has the guard injected; nil: it injects none. A setting with neither argument nor
// variable has the webhook's own default.
func Guard(d *appsv1.Deployment) *config.GuardSettings {
	if d == nil {
		return nil
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		if image := setting(c, "guard-image"); image != "" {
			return &config.GuardSettings{
				Image:      image,
				Mirrors:    list(setting(c, "guard-image-mirrors")),
				PullPolicy: corev1.PullPolicy(cmp.Or(setting(c, "guard-pull-policy"), string(corev1.PullIfNotPresent))),
				PullSecret: setting(c, "guard-pull-secret"),
				CPU:        cmp.Or(setting(c, "guard-cpu"), GuardCPU),
				Memory:     cmp.Or(setting(c, "guard-memory"), GuardMemory),
			}
		}
	}
	return nil
}

// setting is the value of one of the webhook's flags in a container, by argument or else by variable.
func setting(c corev1.Container, flag string) string {
	value, given := Argument(c, flag)
	if given {
		return value
	}
	variable := "GPUSLICE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
	for _, e := range c.Env {
		if e.Name == variable {
			value = e.Value
		}
	}
	return value
}

// Argument is the value of a flag in a container's command line. The last one counts.
func Argument(c corev1.Container, flag string) (value string, given bool) {
	all := slices.Concat(c.Command, c.Args)
	for i, argument := range all {
		name, text, joined := strings.Cut(argument, "=")
		if strings.TrimLeft(name, "-") != flag || name == flag {
			continue
		}
		if !joined && i+1 < len(all) {
			text = all[i+1]
		}
		value, given = text, true
	}
	return value, given
}

// list reads a setting with several values.
func list(value string) []string {
	if value == "" {
		return nil
	}
	return strings.Split(value, ",")
}
