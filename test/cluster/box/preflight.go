package box

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Preflight returns nil where a box can be expected to work, and else one line with the reason why not, as an error
// that wraps ErrUnsupported. It changes nothing.
func Preflight() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: it needs root, and this is user %d", ErrUnsupported, os.Geteuid())
	}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fmt.Errorf("%w: read own capabilities: %w", ErrUnsupported, err)
	}
	if missing := missingCapability(string(text)); missing != "" {
		return fmt.Errorf("%w: root lacks the capability %s (in a container: run it with --privileged)", ErrUnsupported, missing)
	}
	kinds, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return fmt.Errorf("%w: read file systems: %w", ErrUnsupported, err)
	}
	for _, kind := range []string{"overlay", "cgroup"} {
		if !strings.Contains(string(kinds), "\t"+kind) {
			return fmt.Errorf("%w: the kernel has no file system %s (try modprobe %s)", ErrUnsupported, kind, kind)
		}
	}
	if _, err := hierarchies(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return nil
}

// missingCapability returns the first needed capability that is not effective according to the text of
// /proc/PID/status, or "".
func missingCapability(status string) string {
	var effective uint64
	for line := range strings.Lines(status) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			effective, _ = strconv.ParseUint(strings.TrimSpace(hex), 16, 64) // the kernel's own spelling
		}
	}
	for _, c := range []struct {
		bit  int
		name string
	}{
		{unix.CAP_SYS_ADMIN, "SYS_ADMIN"}, {unix.CAP_NET_ADMIN, "NET_ADMIN"}, {unix.CAP_MKNOD, "MKNOD"},
		{unix.CAP_SYS_CHROOT, "SYS_CHROOT"}, {unix.CAP_SETUID, "SETUID"}, {unix.CAP_KILL, "KILL"},
	} {
		if effective&(1<<c.bit) == 0 {
			return c.name
		}
	}
	return ""
}
