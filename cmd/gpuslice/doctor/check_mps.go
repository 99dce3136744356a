package doctor

import "github.com/gpuslice/gpuslice/cmd/client/nvidia"

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
			all = append(all,
				newFinding(Problem, "the MPS control daemon is not ready everywhere: clients there do not start, or take the whole card").
					With(daemonSet(d), "status.numberReady", decimal(d.Status.NumberReady)).
					With(daemonSet(d), "status.desiredNumberScheduled", decimal(d.Status.DesiredNumberScheduled)).
					WithRemedy("kubectl -n %s describe daemonset %s", d.Namespace, d.Name))
			continue
		}
		all = append(all, newFinding(OK, "the MPS control daemon is ready on %d nodes", d.Status.NumberReady).With(daemonSet(d), "", ""))
	}
	return all
}
