// Package cgroupv2 holds guard and agent against a kernel with cgroup v2 alone, in a virtual machine (package vm): real
// processes, which runc and crun start as a kubelet would have them, in the cgroups that both drivers and both runtimes make.
// There is no kubelet, and the agent's API server is package memoryapi.
package cgroupv2
