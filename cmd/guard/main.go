package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	closeMemory()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(command(ctx, os.Args[1:], process{out: os.Stdout, err: os.Stderr, lookup: os.LookupEnv}))
}

// closeMemory keeps processes of the guard's user out of it: a tenant may run as
// the same user, and would else read its memory, write its limits and open its
// files. Whoever has the capability SYS_PTRACE is not kept out.
func closeMemory() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}
