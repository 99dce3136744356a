package child

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Reap waits for all children of process 1, most of them orphans, until the one with number pid has ended, and returns its exit status.
func Reap(pid int) (int, error) {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 1, fmt.Errorf("wait for children: %w", err)
		case got == pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case got == pid && status.Exited():
			return status.ExitStatus(), nil
		}
	}
}
