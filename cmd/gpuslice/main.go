package main

import "os"

// version is stamped at build time: -ldflags "-X main.version=v1.2.3".
var version string

func main() {
	os.Exit(run(os.Args, streams{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv}))
}
