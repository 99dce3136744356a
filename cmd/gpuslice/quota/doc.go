// Package quota is the command that shows quota usage: read from policies, ledgers and pods by those who may read them,
// or from the webhook, which answers anyone who may create pods.
package quota
