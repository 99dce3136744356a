package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(command(ctx, os.Args[1:], process{out: os.Stdout, err: os.Stderr, lookup: os.LookupEnv}))
}
