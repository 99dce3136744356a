package oncard

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// sharedBytes are the bytes that two processes share.
const sharedBytes = gibibyte

// allocators compares NVML's list with memory that was not taken by cuMemAlloc, and with memory that processes share.
func allocators(ctx context.Context, c *card) []check {
	if err := c.requireFree(ctx, 3*gibibyte); err != nil {
		return []check{broken("cuMemCreate", err)}
	}
	return []check{
		c.takenBy(ctx, "cuMemCreate", "create"),
		c.takenBy(ctx, "cuMemAllocAsync", "allocateAsync"),
		c.ipc(ctx), c.descriptor(ctx),
	}
}

func (c *card) takenBy(ctx context.Context, subject, do string) check {
	p, err := c.start(ctx, nil)
	if err == nil {
		_, err = p.do(ctx, order{Do: do, Bytes: gibibyte})
	}
	if err != nil {
		return broken(subject, err)
	}
	defer p.stop()
	return c.compare(ctx, subject, p.pid, gibibyte)
}

// ipc opens memory of one process in another: one of them has to be charged.
func (c *card) ipc(ctx context.Context) check {
	const subject = "IPC handle"
	owner, err := c.start(ctx, nil)
	if err != nil {
		return broken(subject, err)
	}
	defer owner.stop()
	other, err := c.start(ctx, nil)
	if err != nil {
		return broken(subject, err)
	}
	defer other.stop()
	if _, err := owner.do(ctx, order{Do: "allocate", Bytes: sharedBytes}); err != nil {
		return broken(subject, err)
	}
	handle, err := owner.do(ctx, order{Do: "ipc"})
	if err != nil {
		return broken(subject, err)
	}
	if _, err := other.do(ctx, order{Do: "openIPC", Handle: handle.Handle}); err != nil {
		return broken(subject, err)
	}
	return c.sharers(ctx, subject, owner, other)
}

// sharers reports how NVML counts memory that two processes share.
func (c *card) sharers(ctx context.Context, subject string, owner, other *process) check {
	first, there, err := c.listed(ctx, owner.pid)
	if err != nil {
		return broken(subject, err)
	}
	second, alsoThere, err := c.listed(ctx, other.pid)
	if err != nil {
		return broken(subject, err)
	}
	return verdict(subject, there && alsoThere && max(first.UsedBytes, second.UsedBytes) >= sharedBytes,
		"1Gi is shared: NVML has %d MiB for its owner and %d MiB for the other", first.UsedBytes/mebibyte, second.UsedBytes/mebibyte)
}

// descriptor passes memory to another process by its descriptor, and terminates the owner: who holds it has to be charged.
func (c *card) descriptor(ctx context.Context) check {
	const subject = "passed descriptor"
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return broken(subject, fmt.Errorf("make a pair of sockets: %w", err))
	}
	ends := []*os.File{os.NewFile(uintptr(pair[0]), "owner"), os.NewFile(uintptr(pair[1]), "other")}
	defer ends[0].Close()
	defer ends[1].Close()
	owner, err := c.start(ctx, nil, ends[0])
	if err != nil {
		return broken(subject, err)
	}
	defer owner.stop()
	other, err := c.start(ctx, nil, ends[1])
	if err != nil {
		return broken(subject, err)
	}
	defer other.stop()
	if _, err := owner.do(ctx, order{Do: "give", Bytes: sharedBytes}); err != nil {
		return broken(subject, err)
	}
	if _, err := other.do(ctx, order{Do: "take"}); err != nil {
		return broken(subject, err)
	}
	both := c.sharers(ctx, subject, owner, other)
	if both.state != Holds {
		return both
	}
	owner.stop()
	found, there, err := c.listed(ctx, other.pid)
	if err != nil {
		return broken(subject, err)
	}
	return verdict(subject, there && found.UsedBytes >= sharedBytes, "%s; after the owner's end %d MiB for the other",
		both.detail, found.UsedBytes/mebibyte)
}
