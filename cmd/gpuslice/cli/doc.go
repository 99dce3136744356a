// Package cli holds what every command shares: streams, exit codes, flags, tables, colours and the frame of -o json.
package cli
