// Package standing finds out how quotas stand: from policies, ledgers and pods, as whoever runs the cluster may read them, or
// by asking the webhook, which answers anyone who may create pods.
package standing
