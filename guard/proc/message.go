package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Tell appends the sentence to the termination message of the process's
// container, where the guard may write into it: it runs as the same user, and
// with no fewer capabilities. The kubelet shows the message when the container
// has ended.
func (t *Table) Tell(pid int, sentence string) error {
	s, where, key := t.find(pid)
	if where != sibling {
		return fmt.Errorf("tell process %d: it is no process of the pod's tenants", pid)
	}
	id := t.identify(key, s)
	if id.path == "" {
		return fmt.Errorf("tell process %d: %w", pid, errNoTerminationLog)
	}
	// A root of its own: a tenant's symbolic links lead nowhere else.
	root, err := os.OpenRoot(filepath.Join(t.root, strconv.Itoa(pid), "root"))
	if err != nil {
		return fmt.Errorf("tell process %d: %w", pid, err)
	}
	defer root.Close()
	f, err := root.OpenFile(strings.TrimPrefix(id.path, "/"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("tell process %d: %w", pid, err)
	}
	defer f.Close()
	if _, err := f.WriteString(sentence + "\n"); err != nil {
		return fmt.Errorf("tell process %d: %w", pid, err)
	}
	return nil
}
