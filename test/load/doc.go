// Package load puts quotas under load: three replicas of the webhook as processes on a real API server, hundreds of
// creates at once, other webhooks that deny, names that collide, clients that leave, replicas that are killed and
// paused or whose clock is wrong, an API server that is restarted and an etcd that stands still. A watch of all pods
// shows whether more ever lived at once than the quota allows, and the ledgers are compared with the pods that live
// when all is quiet.
//
// Every tenant has a seed, a namespace and a budget of its own; they run side by side and settle together.
package load
