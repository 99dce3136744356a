// Package resourcename holds the names of extended resources for GPUs.
package resourcename
