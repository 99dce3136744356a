// Package installed reads the inputs of an installation's decisions from the API server: policies, state, nodes, the
// guard's settings, pods and quotas. It writes nothing; an object that may not be read is an error, never a missing
// one.
package installed
