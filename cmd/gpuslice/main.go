package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
)

// version is stamped at build time: -ldflags "-X main.version=v1.2.3".
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args,
		cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Now: time.Now, Version: buildVersion()})
	stop()
	os.Exit(code)
}
