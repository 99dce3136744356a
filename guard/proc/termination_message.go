package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// AppendTerminationMessage appends the message to the termination message of the
// process's container, where the guard may write it: it must run as the same
// user, and with no fewer capabilities. The kubelet shows the text once the
// container has terminated.
func (t *Table) AppendTerminationMessage(pid int, message string) error {
	s, where, key := t.find(pid)
	if where != sibling {
		return fmt.Errorf("write the termination message of process %d: it is no process of the pod's tenants", pid)
	}
	id := t.identify(key, s)
	if id.path == "" {
		return fmt.Errorf("write the termination message of process %d: %w", pid, errNoTerminationLog)
	}
	// os.Root: a tenant's symbolic links lead nowhere else.
	root, err := os.OpenRoot(filepath.Join(t.root, strconv.Itoa(pid), "root"))
	if err != nil {
		return fmt.Errorf("write the termination message of process %d: %w", pid, err)
	}
	defer root.Close()
	f, err := root.OpenFile(strings.TrimPrefix(id.path, "/"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("write the termination message of process %d: %w", pid, err)
	}
	defer f.Close()
	if _, err := f.WriteString(message + "\n"); err != nil {
		return fmt.Errorf("write the termination message of process %d: %w", pid, err)
	}
	return nil
}
