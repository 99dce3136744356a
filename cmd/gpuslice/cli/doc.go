// Package cli holds the common parts of all commands: streams, exit codes, flags, tables, colours and the frame of -o
// json.
package cli
