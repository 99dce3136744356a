// Package pod lays real processes out as the containers of one pod, under a
// folder that stands for /proc: their cgroups and mounts are invented, everything
// else is the kernel's. So the guard can be run against real processes where no
// kubelet is, and the fake GPU library shows it these alone.
package pod
