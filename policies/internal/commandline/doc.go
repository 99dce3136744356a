// Package commandline finds the program that a container runs from its command and arguments, through shells and inits.
package commandline
