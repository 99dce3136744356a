package doctor

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// Where an MPS daemon has its pipes.
const (
	pipeVariable = "CUDA_MPS_PIPE_DIRECTORY"
	defaultPipe  = "/tmp/nvidia-mps"
)

// checkMPSPipe looks for MPS daemons whose pipes no pod can reach. A process that finds no daemon uses the whole GPU.
func checkMPSPipe(f *Facts) []Finding {
	var all []Finding
	for _, d := range parts(f, nvidia.OwnMPSDaemon) {
		pipe, _, set := variable(d, pipeVariable)
		if !set {
			pipe = defaultPipe
		}
		if directory := onHost(d, pipe); directory != "" {
			all = append(all, newFinding(OK, "the pipes of an MPS control daemon are on the host").With(daemonSet(d), "hostPath", directory))
			continue
		}
		all = append(all, newFinding(Problem,
			"the pipes of an MPS control daemon are inside its own container: no pod reaches the daemon, and each uses the whole GPU").
			With(daemonSet(d), "env["+pipeVariable+"]", pipe).
			WithRemedy("mount a hostPath at %s of the daemon, and name it in mps.pipeDirectory of the policy\nor use the daemon of NVIDIA's device plugin, by sharing.mps in the plugin's configuration", pipe))
	}
	return all
}

// onHost is the hostPath at which a DaemonSet mounts a directory or one above it; "": it mounts none.
func onHost(d *appsv1.DaemonSet, directory string) string {
	host := map[string]*corev1.HostPathVolumeSource{}
	for _, v := range d.Spec.Template.Spec.Volumes {
		host[v.Name] = v.HostPath
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, m := range c.VolumeMounts {
			if volume := host[m.Name]; volume != nil && strings.HasPrefix(directory+"/", strings.TrimSuffix(m.MountPath, "/")+"/") {
				return volume.Path
			}
		}
	}
	return ""
}
