// Package rules holds the tamper rules, one file each: ways in which a pod could leave its slice or take devices.
package rules
