package podedit

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/abuse"
)

// guarded is a pod with a slice, and its guard.
func guarded(t *testing.T) (*promise.Promise, *corev1.Pod, *corev1.Container) {
	t.Helper()
	p, authored := fullPromise(), authoredPod()
	for _, name := range []string{"a", "b", "aws-iam-token", "kube-api-access-x", "kube-api-access-a"} {
		authored.Spec.Volumes = append(authored.Spec.Volumes,
			corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}})
	}
	authored.Spec.Volumes = append(authored.Spec.Volumes,
		corev1.Volume{Name: "image",
			VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "mine", PullPolicy: corev1.PullAlways}}},
		corev1.Volume{Name: "node", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv/mine"}}},
		corev1.Volume{Name: "empty", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	pod := Apply(p, authored)
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == limits.GuardContainer {
			return p, pod, c
		}
	}
	t.Fatal("the pod has no guard")
	return nil, nil, nil
}

func mount(name, at string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: name, MountPath: at, ReadOnly: true}
}

// TestManyMounts: mounts are compared with each other, and so only few of them are.
func TestManyMounts(t *testing.T) {
	t.Parallel()
	p, pod, guard := guarded(t)
	own := len(guard.VolumeMounts)
	for i := range 20_000 {
		guard.VolumeMounts = append(guard.VolumeMounts, mount("a", fmt.Sprintf("/var/run/secrets/%d", i)))
	}
	after := Apply(p, pod)
	for _, c := range after.Spec.InitContainers {
		if c.Name == limits.GuardContainer && len(c.VolumeMounts) != own {
			t.Errorf("the guard has %d mounts, and %d of its own", len(c.VolumeMounts), own)
		}
	}
}

// TestAdditions has other webhooks write into every container, gpuslice's too.
func TestAdditions(t *testing.T) {
	t.Parallel()
	fieldRef := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	for name, add := range map[string]func(*corev1.Container){
		"a proxy": func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "HTTP_PROXY", Value: "http://proxy:3128"},
				corev1.EnvVar{Name: "no_proxy", Value: "10.0.0.0/8"})
		},
		"a proxy before all": func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "SSL_CERT_FILE", Value: "/etc/ssl/ca.crt"},
				corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: "api.example.com"})
		},
		"an identity of EKS": func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "AWS_ROLE_ARN", Value: "arn:aws:iam::1:role/a"},
				corev1.EnvVar{Name: "AWS_WEB_IDENTITY_TOKEN_FILE", Value: "/var/run/secrets/eks.amazonaws.com/serviceaccount/token"})
			c.VolumeMounts = append(c.VolumeMounts, mount("aws-iam-token", "/var/run/secrets/eks.amazonaws.com/serviceaccount"))
		},
		"two identities": func(c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, mount("a", "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount"),
				mount("b", "/var/run/secrets/azure/tokens"), mount("kube-api-access-x", tokenPath))
		},
		"an identity of Google": func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "GOOGLE_APPLICATION_CREDENTIALS", Value: "/var/run/secrets/gcp/key"})
		},
		"names of the pod": func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "DD_AGENT_HOST", ValueFrom: fieldRef("status.hostIP")},
				corev1.EnvVar{Name: "DD_ENV", ValueFrom: fieldRef("metadata.labels['env']")})
		},
		"a time zone": func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "TZ", Value: "Europe/Berlin"})
		},
		"some of the node's disk": func(c *corev1.Container) {
			c.Resources.Requests[corev1.ResourceEphemeralStorage], c.Resources.Limits[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi"),
				resource.MustParse("2Gi")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, pod, _ := guarded(t)
			for i := range pod.Spec.InitContainers {
				if c := &pod.Spec.InitContainers[i]; strings.HasPrefix(c.Name, "gpuslice-") {
					add(c)
				}
			}
			wantPod(t, pod, Apply(p, pod)) // ours is asked again
			if found := Undone(p, pod, nil); len(found) > 0 {
				t.Error(found)
			}
		})
	}
}

// TestHarmfulAdditions is what a tenant may write there too, with a promise that was copied.
func TestHarmfulAdditions(t *testing.T) {
	t.Parallel()
	variable := func(name, value string) func(*corev1.Container) {
		return func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value}) }
	}
	from := func(source corev1.EnvVarSource) func(*corev1.Container) {
		return func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: "A", ValueFrom: &source}) }
	}
	mounted := func(mounts ...corev1.VolumeMount) func(*corev1.Container) {
		return func(c *corev1.Container) { c.VolumeMounts = append(c.VolumeMounts, mounts...) }
	}
	but := func(change func(*corev1.VolumeMount)) corev1.VolumeMount {
		m := mount("a", "/var/run/secrets/a")
		change(&m)
		return m
	}
	disk := func(c *corev1.Container, name corev1.ResourceName) {
		c.Resources.Limits[name] = resource.MustParse("1")
	}
	attacks := map[string]struct {
		add  func(*corev1.Container)
		says string
	}{
		"a library":                            {variable("LD_PRELOAD", "/x.so"), "env[LD_PRELOAD]"},
		"the loader's settings":                {variable("GLIBC_TUNABLES", "glibc.malloc.check=3"), "env[GLIBC_TUNABLES]"},
		"the allocator's settings":             {variable("MALLOC_ARENA_MAX", "1"), "env[MALLOC_ARENA_MAX]"},
		"modules of the C library":             {variable("GCONV_PATH", "/var/run/secrets/a"), "env[GCONV_PATH]"},
		"Go's settings":                        {variable("GODEBUG", "madvdontneed=1"), "env[GODEBUG]"},
		"Go's memory limit":                    {variable("GOMEMLIMIT", "1"), "env[GOMEMLIMIT]"},
		"Go without a garbage collect":         {variable("GOGC", "off"), "env[GOGC]"},
		"one that looks like Google's":         {variable("GOOGLEX", "1"), "env[GOOGLEX]"},
		"a debug file of NVML":                 {variable("__NVML_DBG_FILE", "/x"), "env[__NVML_DBG_FILE]"},
		"a limit of the guard":                 {variable("GPUSLICE_GRACE", "1h"), "env[GPUSLICE_GRACE]"},
		"all devices":                          {variable("NVIDIA_VISIBLE_DEVICES_X", "all"), "env[NVIDIA_VISIBLE_DEVICES_X]"},
		"MPS of another daemon":                {variable("CUDA_MPS_PIPE_DIRECTORY", "/x"), "env[CUDA_MPS_PIPE_DIRECTORY]"},
		"programs":                             {variable("PATH", "/var/run/secrets/a"), "env[PATH]"},
		"time zones":                           {variable("ZONEINFO", "/var/run/secrets/a"), "env[ZONEINFO]"},
		"a time zone that is a file":           {variable("TZ", "/var/run/secrets/a/fifo"), "env[TZ]"},
		"a time zone behind a colon":           {variable("TZ", ":/var/run/secrets/a/fifo"), "env[TZ]"},
		"a time zone that climbs":              {variable("TZ", "../../../var/run/secrets/a/fifo"), "env[TZ]"},
		"a value with which no program starts": {variable("A", strings.Repeat("x", 128<<10)), "env[A]"},
		"one that grows with a Service":        {variable("A", "$(LATER_PORT)$(LATER_PORT)"), "env[A]"},
		"more than a program can have": {func(c *corev1.Container) {
			for i := range 100 {
				variable(fmt.Sprintf("A%d", i), "x")(c)
			}
		}, "env[A99]"},
		"a ConfigMap that can be deleted": {from(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "a"}}), "env[A]"},
		"a Secret that can be deleted": {from(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "a", Optional: new(true)}}),
			"env[A]"},
		"an annotation that grows": {
			from(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['a']"}}), "env[A]",
		},
		"a file": {from(corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{Path: "a"}}), "env[A]"},
		"a container's resources": {from(corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}),
			"env[A]"},
		"a source that is not known": {from(corev1.EnvVarSource{}), "env[A]"},
		"all variables of a ConfigMap": {func(c *corev1.Container) {
			c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{}}}
		}, "envFrom"},
		"processes":         {mounted(mount("a", "/proc")), "volumeMounts[/proc]"},
		"devices":           {mounted(mount("a", "/dev/nvidia0")), "volumeMounts[/dev/nvidia0]"},
		"the guard itself":  {mounted(mount("a", "/gpuslice-guard")), "volumeMounts[/gpuslice-guard]"},
		"libraries":         {mounted(mount("a", "/usr/lib/x86_64-linux-gnu")), "volumeMounts[/usr/lib/x86_64-linux-gnu]"},
		"the loader's list": {mounted(mount("a", "/etc/ld.so.preload")), "volumeMounts[/etc/ld.so.preload]"},
		"a folder above":    {mounted(mount("a", "/var/run")), "volumeMounts[/var/run]"},
		"the folder itself": {mounted(mount("a", "/var/run/secrets")), "volumeMounts[/var/run/secrets]"},
		"all devices by path": {mounted(mount("a", "/var/run/nvidia-container-devices/all")),
			"volumeMounts[/var/run/nvidia-container-devices/all]"},
		"a path that climbs":       {mounted(mount("a", "/var/run/secrets/../../../proc")), "/proc]"},
		"the same by another path": {mounted(mount("a", "/run/secrets/a")), "volumeMounts[/run/secrets/a]"},
		"a link that leads the next mount to the libraries": {mounted(mount("a", "/var/run/secrets/a"), mount("b", "/var/run/secrets/a/lib")),
			"volumeMounts[/var/run/secrets/a/lib]"},
		"a link in a token's folder": {mounted(mount("kube-api-access-a", tokenPath), mount("b", tokenPath+"/lib")),
			"volumeMounts[" + tokenPath + "/lib]"},
		"one above a token's folder": {mounted(mount("kube-api-access-a", tokenPath),
			mount("b", "/var/run/secrets/kubernetes.io")),
			"volumeMounts[/var/run/secrets/kubernetes.io]"},
		"a part of a volume": {mounted(but(func(m *corev1.VolumeMount) { m.SubPath = "x" })),
			"volumeMounts[/var/run/secrets/a]"},
		"a part by a variable": {mounted(but(func(m *corev1.VolumeMount) { m.SubPathExpr = "$(A)" })),
			"volumeMounts[/var/run/secrets/a]"},
		"a volume that is written": {mounted(but(func(m *corev1.VolumeMount) { m.ReadOnly = false })),
			"volumeMounts[/var/run/secrets/a]"},
		"a volume of gpuslice": {mounted(but(func(m *corev1.VolumeMount) { m.Name = "gpuslice-shim" })),
			"volumeMounts[/var/run/secrets/a]"},
		"mounts that follow the node": {mounted(but(func(m *corev1.VolumeMount) {
			m.MountPropagation = new(corev1.MountPropagationHostToContainer)
		})), "volumeMounts[/var/run/secrets/a]"},
		"mounts that a node may not have": {mounted(but(func(m *corev1.VolumeMount) {
			m.RecursiveReadOnly = new(corev1.RecursiveReadOnlyEnabled)
		})), "volumeMounts[/var/run/secrets/a]"},
		"a device":             {func(c *corev1.Container) { disk(c, "nvidia.com/gpu") }, "resources.limits[nvidia.com/gpu]"},
		"huge pages":           {func(c *corev1.Container) { disk(c, "hugepages-2Mi") }, "resources.limits[hugepages-2Mi]"},
		"less memory":          {func(c *corev1.Container) { disk(c, corev1.ResourceMemory) }, "resources.limits[memory]"},
		"a claim":              {func(c *corev1.Container) { c.Resources.Claims = []corev1.ResourceClaim{{Name: "nic"}} }, "resources.claims"},
		"another pull policy":  {func(c *corev1.Container) { c.ImagePullPolicy = corev1.PullAlways }, "imagePullPolicy"},
		"another user":         {func(c *corev1.Container) { c.SecurityContext.RunAsUser = new(int64(7)) }, "securityContext.runAsUser"},
		"no restart":           {func(c *corev1.Container) { c.RestartPolicy = nil }, "restartPolicy"},
		"a command":            {func(c *corev1.Container) { c.Command = []string{"/bin/true"} }, "command"},
		"another value of one": {func(c *corev1.Container) { c.TerminationMessagePath = "/x" }, "terminationMessagePath"},
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, pod, guard := guarded(t)
			want := pod.DeepCopy()
			attack.add(guard)
			got := Apply(p, pod)
			if found := strings.Join(Undone(p, pod, nil), ", "); !strings.Contains(found, "spec.initContainers[gpuslice-guard]."+attack.says) &&
				!strings.Contains(found, attack.says) {
				t.Errorf("%q names no %s", found, attack.says)
			}
			for i := range got.Spec.InitContainers { // what is harmless in itself may stay
				if c := &got.Spec.InitContainers[i]; len(c.Env) == len(want.Spec.InitContainers[i].Env)+maxVariables {
					c.Env = want.Spec.InitContainers[i].Env
				}
				got.Spec.InitContainers[i].VolumeMounts = want.Spec.InitContainers[i].VolumeMounts
			}
			wantPod(t, want, got)
		})
	}
	abuse.Report(t, abuse.Attempt{Threat: "A12", Attack: "a container of gpuslice gets a library, a variable or a mount that could weaken it",
		Outcome: abuse.Denied, Words: "spec.initContainers[gpuslice-guard].env[LD_PRELOAD]"})
}
