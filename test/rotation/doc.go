// Package rotation holds tests of package certs on a real control plane: two API servers on one etcd, three replicas, a new
// connection for each call, and cert-manager's own controllers. With connections that are kept a broken rotation shows no
// failed call at all, since a leaf is looked at only when a connection begins.
//
// The replicas are the webhook's server and its sources in this process, with the rights of their ServiceAccount. What they
// serve is an answer that allows everything and ends its connection.
package rotation
