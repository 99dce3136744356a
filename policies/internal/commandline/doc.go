// Package commandline reads what a container runs from its command and arguments, through shells and inits.
package commandline
