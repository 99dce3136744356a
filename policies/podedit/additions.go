package podedit

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// refreshed is the promised container, with additions of others that cannot weaken it: webhooks for proxies and tokens
// write into every container, and run again after gpuslice. A tenant may have written them too, with a copied promise,
// so that only additions known to be harmless stay.
func refreshed(have, promised corev1.Container, volumes []corev1.Volume) corev1.Container {
	out := promised
	most := len(promised.Env) + maxVariables
	out.Env = slices.Clip(out.Env) // gpuslice's own first: none of its values refers to another's variable
	for _, e := range have.Env {
		if len(out.Env) < most && !slices.ContainsFunc(promised.Env, func(own corev1.EnvVar) bool { return own.Name == e.Name }) &&
			isHarmlessVariable(e) {
			out.Env = append(out.Env, e)
		}
	}
	out.VolumeMounts = slices.Clip(out.VolumeMounts)
	few := len(have.VolumeMounts) <= len(promised.VolumeMounts)+maxMounts // each is compared with all
	for i, m := range have.VolumeMounts {
		if isTokenMount(m) || few && isHarmlessMount(m, volumes) && standsAlone(m.MountPath, promised.VolumeMounts) &&
			standsAlone(m.MountPath, slices.Delete(slices.Clone(have.VolumeMounts), i, i+1)) {
			out.VolumeMounts = append(out.VolumeMounts, m)
		}
	}
	out.Resources.Limits = withStorage(promised.Resources.Limits, have.Resources.Limits)
	out.Resources.Requests = withStorage(promised.Resources.Requests, have.Resources.Requests)
	return out
}

// readVariables are the variables that the C library, Go's runtime, NVIDIA's libraries or the guard read, and those by which programs
// are found. NVIDIA's debug variables begin with "_".
var readVariables = regexp.MustCompile(`^(GPUSLICE_|NV|CUDA|LD_|GLIBC|MALLOC_|GO|_)|` +
	`^(PATH|HOME|IFS|ENV|TMPDIR|TZDIR|ZONEINFO|LOCPATH|NLSPATH|NIS_PATH|GCONV_PATH|GETCONF_DIR|HOSTALIASES|LOCALDOMAIN|RES_OPTIONS|RESOLV_HOST_CONF)$`)

// timeZone is a name under /usr/share/zoneinfo. Any other value names a file, which may block whoever opens it.
var timeZone = regexp.MustCompile(`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$`)

// maxVariable bounds a variable, and maxVariables those that are added to one container. With one of 128 KiB, or 2 MiB in all, no program
// starts.
const (
	maxVariable  = 16 << 10
	maxVariables = 64
)

// maxMounts bounds the mounts that are added to one container.
const maxMounts = 16

// isHarmlessVariable reports whether the guard does not read the variable, and starts again whatever becomes of it: of a ConfigMap or
// Secret that is deleted it would not, annotations may grow, and so may variables of Services to which others refer.
func isHarmlessVariable(e corev1.EnvVar) bool {
	switch from := e.ValueFrom; {
	case readVariables.MatchString(e.Name) && !strings.HasPrefix(e.Name, "GOOGLE_"), len(e.Name)+len(e.Value) > maxVariable:
		return false
	case e.Name == "TZ":
		return from == nil && timeZone.MatchString(e.Value)
	case from == nil:
		return !strings.Contains(e.Value, "$(")
	default:
		return from.FieldRef != nil && !strings.HasPrefix(from.FieldRef.FieldPath, "metadata.annotations")
	}
}

// tokensPath is the folder under which webhooks mount tokens. Nothing of the guard's or of the driver's is there.
const tokensPath = "/var/run/secrets/"

// isHarmlessMount reports whether the mount is a folder that is read there, as tokens are. The container starts again as long as its pod's
// other containers do: of an image that cannot be pulled any more, or a folder of the node that is gone, it would not.
func isHarmlessMount(m corev1.VolumeMount, volumes []corev1.Volume) bool {
	ofTokens := slices.ContainsFunc(volumes, func(v corev1.Volume) bool {
		return v.Name == m.Name && (v.Projected != nil || v.Secret != nil || v.ConfigMap != nil || v.DownwardAPI != nil || v.CSI != nil)
	})
	return ofTokens && m.ReadOnly && m.SubPath == "" && m.SubPathExpr == "" && m.RecursiveReadOnly == nil && !podspec.IsOurs(m.Name) &&
		(m.MountPropagation == nil || *m.MountPropagation == corev1.MountPropagationNone) &&
		strings.HasPrefix(m.MountPath, tokensPath) && path.Clean(m.MountPath) == m.MountPath
}

// standsAlone reports whether no other mount lies at, above or below the path: a link in one volume would lead the next mount anywhere.
func standsAlone(at string, others []corev1.VolumeMount) bool {
	return !slices.ContainsFunc(others, func(m corev1.VolumeMount) bool {
		other := path.Clean(m.MountPath)
		return other == at || strings.HasPrefix(at, other+"/") || strings.HasPrefix(other, at+"/")
	})
}

// withStorage returns the promised list with the requests that somebody added for the node's disk, which a promise may
// not name. No other resource is known to give no device.
func withStorage(promised, have corev1.ResourceList) corev1.ResourceList {
	added, ok := have[corev1.ResourceEphemeralStorage]
	if _, named := promised[corev1.ResourceEphemeralStorage]; named || !ok {
		return promised
	}
	out := maps.Clone(promised)
	if out == nil {
		out = corev1.ResourceList{}
	}
	out[corev1.ResourceEphemeralStorage] = added
	return out
}
