package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/test/undead"
)

// init keeps the main goroutine on the process's first thread.
func init() { runtime.LockOSThread() }

// firstThread makes the first thread exit when it is closed.
var firstThread = make(chan struct{})

// endFirstThread ends the first thread on request: the kernel reports a zombie then, and the process runs on.
func endFirstThread() {
	<-firstThread
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
}

// sockets are kept open.
var sockets []*net.UnixListener

// occupy opens so many sockets in the pod's network namespace, one under a name
// that breaks who reads the kernel's list by lines.
func occupy(count int) error {
	for i := range count {
		name := fmt.Sprintf("@occupied-%d-%d", os.Getpid(), i)
		if i == 0 {
			name = "@x\n\ny"
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		if err != nil {
			return fmt.Errorf("occupy a name: %w", err)
		}
		sockets = append(sockets, l)
	}
	return nil
}

// connect opens connections to an address and keeps them, as many at once as it
// gets, until the process ends.
func connect(address string) {
	for range 8 {
		go func() {
			for {
				c, err := net.DialTimeout("tcp", address, time.Second)
				if err != nil {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				time.AfterFunc(10*time.Second, func() { _ = c.Close() })
				time.Sleep(time.Millisecond)
			}
		}()
	}
}

// replaceByFIFO puts a FIFO in the place of a mounted file, by renaming the folder
// that it is in.
func replaceByFIFO(path string) error {
	folder := filepath.Dir(path)
	if err := os.Rename(folder, folder+".old"); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	if err := os.Mkdir(folder, 0o777); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	return nil
}

// changeRoot leaves the process without most of its mounts.
func changeRoot(path string) error {
	if err := syscall.Chroot(path); err != nil {
		return fmt.Errorf("change the root to %s: %w", path, err)
	}
	return nil
}

// threads begins so many threads.
func threads(count int) {
	var begun sync.WaitGroup
	for range count {
		begun.Add(1)
		go func() {
			runtime.LockOSThread()
			begun.Done()
			select {}
		}()
	}
	begun.Wait()
}

// crowd starts a process that has so many threads.
func (t *tenant) crowd(count int) error {
	const begun = "begun"
	child := t.script
	child.steps = []step{{do: "threads", count: count}, {do: "say", text: begun}}
	cmd := exec.Command(image(), child.arguments(0)...)
	cmd.Args[0], cmd.Stderr = t.name, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start a crowd: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a crowd: %w", err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == begun {
			t.child = cmd.Process.Pid
			go io.Copy(io.Discard, out)
			return nil
		}
	}
	return fmt.Errorf("start a crowd: it ended: %w", lines.Err())
}

// endThreads ends all threads of the crowd but the last, and keeps them as zombies.
func (t *tenant) endThreads() error {
	ended := make(chan error)
	go func() {
		runtime.LockOSThread()
		ended <- undead.EndThreads(t.child)
		select {} // the tracer stays
	}()
	return <-ended
}
