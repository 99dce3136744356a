package vm

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gpuslice/gpuslice/test/child"
)

// Stages of a program in the machine.
const (
	stageFirst  = "first"
	stageInside = "inside"
)

// exitLine precedes the status of the program, and is the last that it writes.
const exitLine = "\ngpuslice: the program ended with status "

// Inside reports whether this program runs in a virtual machine.
func Inside() bool { return os.Getenv(stageVariable) == stageInside }

// Main runs the tests of a package that may start virtual machines, and returns the exit status.
func Main(m *testing.M) int {
	if os.Getenv(stageVariable) != stageFirst {
		return m.Run()
	}
	if err := first(); err != nil {
		fmt.Fprintln(os.Stderr, "gpuslice:", err)
	}
	unix.Sync()
	fmt.Fprintln(os.Stderr, "gpuslice: turn off:", unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF))
	return 1 // and the kernel panics, which ends QEMU too
}

// first is the machine's first process: it starts this program once more, as an ordinary process, and waits for it.
func first() error {
	if err := setUp(); err != nil {
		return err
	}
	line, err := os.OpenFile("/dev/ttyS1", os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("open serial line: %w", err)
	}
	defer line.Close()
	cmd := exec.Command("/init", os.Args[1:]...)
	cmd.Env = []string{stageVariable + "=" + stageInside, "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	cmd.Stdout, cmd.Stderr = line, line
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start program: %w", err)
	}
	status, err := child.Reap(cmd.Process.Pid)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(line, "%s%d\n", exitLine, status)
	return err
}

// setUp mounts what every Linux has and brings up the loopback interface.
func setUp() error {
	for _, m := range []struct{ kind, at string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"cgroup2", "/sys/fs/cgroup"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"},
	} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return fmt.Errorf("make folder %s: %w", m.at, err)
		}
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	defer unix.Close(fd)
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("name loopback: %w", err)
	}
	loopback.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, loopback); err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	return nil
}
