// Package memoryapi serves the Kubernetes API from memory, without etcd, in as long as it takes to open a port. Clients
// get, list, watch, create, update, patch and delete objects of any kind, with resource versions, conflicts and
// selectors as on a real API server. Nothing is validated, defaulted, authorized or admitted: tests of those need
// test/cluster.
package memoryapi
