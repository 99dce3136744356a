// Package charges adds up what containers count for in quotas.
package charges
