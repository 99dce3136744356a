package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/guard/mps"
	"github.com/gpuslice/gpuslice/guard/proc"
)

// Probes reach the running guard over a socket in the abstract namespace, which
// needs no writable file system. Pods on the host's network share that
// namespace, so the name holds the inode of the PID namespace and the guard's
// PID; and since anyone may bind or dial a name, either end talks only to a
// process of the guard's own container.

// probeTimeout bounds one exchange; a probe has a second.
const probeTimeout = 700 * time.Millisecond

// errNoGuard is returned where no guard of this container listens.
var errNoGuard = errors.New("no guard runs in this container")

func socketPrefix(root string) (string, error) {
	namespace, err := mps.Namespace(root)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("@gpuslice-guard-%d-", namespace), nil
}

// listen opens the socket. A name that is taken is skipped.
func listen(root string) (*net.UnixListener, error) {
	prefix, err := socketPrefix(root)
	if err != nil {
		return nil, err
	}
	const tries = 100
	for i := range tries {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), i), Net: "unix"})
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("listen for probes: %w", err)
		}
	}
	return nil, fmt.Errorf("listen for probes: %d names are taken", tries)
}

// serve answers probes until ctx is done.
func serve(ctx context.Context, l *net.UnixListener, table *proc.Table, s *probeStatus) {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		serveOne(conn, table, s)
	}
}

// serveOne answers one probe. They come one at a time, and each is bounded.
func serveOne(conn *net.UnixConn, table *proc.Table, s *probeStatus) {
	defer conn.Close()
	if !ours(conn, table) || conn.SetDeadline(time.Now().Add(probeTimeout)) != nil {
		return
	}
	word := make([]byte, 16)
	n, err := conn.Read(word)
	if err != nil {
		return
	}
	_ = json.NewEncoder(conn).Encode(s.answer(probe(word[:n]), time.Now()))
}

// ours reports whether the other end is a process of the guard's container.
func ours(conn *net.UnixConn, table *proc.Table) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var peer *syscall.Ucred
	controlErr := raw.Control(func(fd uintptr) {
		peer, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	return controlErr == nil && err == nil && peer.Pid > 0 && table.Own(int(peer.Pid))
}

// ask sends a probe to the guard of this container.
func ask(root string, table *proc.Table, p probe) (answer, error) {
	names, err := sockets(root)
	if err != nil {
		return answer{}, err
	}
	failed := errNoGuard
	for _, name := range names {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
		if err != nil {
			continue
		}
		if !ours(conn, table) {
			_ = conn.Close()
			continue
		}
		a, err := exchange(conn, p)
		if err == nil {
			return a, nil
		}
		failed = err // another's guard; this one's may be further on
	}
	return answer{}, failed
}

func exchange(conn *net.UnixConn, p probe) (answer, error) {
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(probeTimeout)); err != nil {
		return answer{}, fmt.Errorf("ask the guard: %w", err)
	}
	if _, err := conn.Write([]byte(p)); err != nil {
		return answer{}, fmt.Errorf("ask the guard: %w", err)
	}
	var a answer
	if err := json.NewDecoder(io.LimitReader(conn, 16<<10)).Decode(&a); err != nil {
		return answer{}, fmt.Errorf("ask the guard: %w", err)
	}
	return a, nil
}

// sockets returns the names of this pod's guard sockets, each once.
func sockets(root string) ([]string, error) {
	prefix, err := socketPrefix(root)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, "net/unix"))
	if err != nil {
		return nil, fmt.Errorf("find the guard's socket: %w", err)
	}
	var names []string
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if name := fields[len(fields)-1]; strings.HasPrefix(name, prefix) && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}
