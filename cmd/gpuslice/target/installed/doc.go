// Package installed reads from the API server what an installation of gpuslice decides by: policies, state, nodes, the
// guard's settings, pods and quotas. It writes nothing; an object that may not be read is an error, never a missing one.
package installed
