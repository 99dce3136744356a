// Package claimtemplate is the ResourceClaimTemplate of a slice: which template a name stands for, and the reverse.
//
// The one idea: a template's name says all of its content. So it does not matter who writes a template or when, any number of
// pods share one, and the API server can compare the two without asking gpuslice.
package claimtemplate
