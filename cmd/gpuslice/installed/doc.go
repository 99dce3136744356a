// Package installed reads what an installation of gpuslice decides by from the API server: policies, what is remembered,
// nodes, and how its guard is set. It writes nothing, and what may not be read is told apart from what is not there.
package installed
