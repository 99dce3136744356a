package shim

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// startsOthers returns why no program of gpuslice's may start the container's command: a profile that somebody wrote for
// the container's own programs may deny others.
func startsOthers(pod *corev1.Pod, c *corev1.Container) error {
	var kind string
	switch {
	case localAppArmor(pod, c):
		kind = "AppArmor"
	case localSeccomp(pod, c):
		kind = "seccomp"
	default:
		return nil
	}
	return errors.New(
		"the " + kind + " profile of the container is of the node (Localhost), and may deny the program that loads the shim; write " +
			"a literal " + pythonPath + " in env (empty where the image sets none)")
}

func localAppArmor(pod *corev1.Pod, c *corev1.Container) bool {
	if s := c.SecurityContext; s != nil && s.AppArmorProfile != nil {
		return s.AppArmorProfile.Type == corev1.AppArmorProfileTypeLocalhost
	}
	if profile, found := pod.Annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+c.Name]; found {
		return strings.HasPrefix(profile, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
	}
	s := pod.Spec.SecurityContext
	return s != nil && s.AppArmorProfile != nil && s.AppArmorProfile.Type == corev1.AppArmorProfileTypeLocalhost
}

func localSeccomp(pod *corev1.Pod, c *corev1.Container) bool {
	if s := c.SecurityContext; s != nil && s.SeccompProfile != nil {
		return s.SeccompProfile.Type == corev1.SeccompProfileTypeLocalhost
	}
	s := pod.Spec.SecurityContext
	return s != nil && s.SeccompProfile != nil && s.SeccompProfile.Type == corev1.SeccompProfileTypeLocalhost
}
