package doctor

import (
	"strings"

	plugin "github.com/NVIDIA/k8s-device-plugin/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/nvidia"
)

// checkMPS looks for the daemon where nodes say that devices are shared by MPS: without one a client takes the whole
// card, or does not start.
func checkMPS(f *Facts) []Finding {
	var nodes []string
	for _, n := range gpuNodes(f) {
		if n.Labels["nvidia.com/gpu.sharing-strategy"] == "mps" {
			nodes = append(nodes, n.Name)
		}
	}
	if len(nodes) == 0 || f.unread(whatDaemonSets) {
		return nil
	}
	daemons := parts(f, nvidia.MPSDaemon)
	if len(daemons) == 0 && len(parts(f, nvidia.OwnMPSDaemon)) > 0 {
		return nil // mps-pipe looks at it
	}
	if len(daemons) == 0 {
		found := newFinding(Warning, "nodes share by MPS, and no DaemonSet looks like NVIDIA's MPS control daemon")
		for _, n := range nodes {
			found = found.With(object("node", "", n), "metadata.labels[nvidia.com/gpu.sharing-strategy]", "mps")
		}
		return []Finding{found.WithRemedy("install NVIDIA's device plugin with its chart, which brings the daemon; or run this on a node: echo get_default_active_thread_percentage | nvidia-cuda-mps-control")}
	}
	var all []Finding
	for _, d := range daemons {
		if d.Status.NumberReady < d.Status.DesiredNumberScheduled || d.Status.NumberReady == 0 {
			all = append(all, newFinding(Problem, "the MPS control daemon is not ready everywhere: clients there do not start, or take the whole card").
				With(daemonSet(d), "status.numberReady", decimal(d.Status.NumberReady)).
				With(daemonSet(d), "status.desiredNumberScheduled", decimal(d.Status.DesiredNumberScheduled)).
				WithRemedy("kubectl -n %s describe daemonset %s", d.Namespace, d.Name))
			continue
		}
		all = append(all, newFinding(OK, "the MPS control daemon is ready on %d nodes", d.Status.NumberReady).With(daemonSet(d), "", ""))
	}
	return all
}

// maxMPSClients is how many clients one MPS daemon serves on a device.
const maxMPSClients = 48

// checkMPSClients looks for devices with more replicas than an MPS daemon has clients.
func checkMPSClients(f *Facts) []Finding {
	found := newFinding(Problem, "a device has more replicas than an MPS daemon has clients: NVIDIA's daemon does not start, and with another daemon some pods do not").
		WithRemedy("configure at most %d replicas a device", maxMPSClients)
	for _, s := range f.settings(nvidia.IsPluginConfig) {
		c, _, err := nvidia.ParsePluginConfig(s.Text)
		if err != nil || c.Sharing.SharingStrategy() != plugin.SharingStrategyMPS {
			continue
		}
		for _, r := range c.Sharing.MPS.Resources {
			if r.Replicas > maxMPSClients {
				found = found.With(s.Object, s.field("sharing.mps.resources[].replicas"), decimal(r.Replicas))
			}
		}
	}
	pools := f.snapshot().Pools()
	for i := range pools {
		if p := &pools[i]; p.MPSProvider != "" && p.Replicas > maxMPSClients {
			found = found.With("pool/"+p.Name, "replicas", decimal(p.Replicas))
		}
	}
	return withEvidence(found)
}

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
		all = append(all, newFinding(Problem, "the pipes of an MPS control daemon are inside its own container: no pod reaches the daemon, and each uses the whole GPU").
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
