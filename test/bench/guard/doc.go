// Command guard prints what the guard costs and how fast it is: the size of its
// binary, memory and CPU at rest, an agent beside a sidecar for each pod, the time from crossing a slice to the process
// gone, and false terminations in a million random steps.
//
// It runs the real binary against the fake NVML library and real processes, and
// needs Go, gcc and Linux, no GPU, cluster or root:
//
//	go run ./test/bench/guard [-rest 30s] [-terminations 100] [-steps 1000000] [-pods 100]
package main
