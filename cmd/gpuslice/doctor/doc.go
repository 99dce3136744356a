// Package doctor says what a cluster offers gpuslice, what stands in its way, and how an installation does.
//
//	Gather(cluster) -> Facts -> checks -> findings
//
// Gather asks the API server once and writes nothing; a check is a pure function of the facts, in a file of its own, with
// one line in Cluster or Installation. What may not be read is a finding too, and never passes for what is not there.
package doctor
