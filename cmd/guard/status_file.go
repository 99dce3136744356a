package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// The guard and its probes meet in the guard's own termination log. The kubelet
// mounts that file into the guard's container alone, so that no other container
// has a name for it: a socket has one in the network namespace, which is the
// pod's or the node's, and a descriptor of the guard can be opened only while
// the guard lets others of its user look into it.
//
// The file begins with the text for people, for the case that the guard is killed:
// the kubelet shows it as the container's termination message.

const (
	// maxStatusFile bounds its input.
	maxStatusFile = 64 << 10
	// lockTimeout is how long a probe waits for the guard, which holds the lock for
	// one write.
	lockTimeout = 2 * time.Second
	lockRetry   = 5 * time.Millisecond
)

// errLocked is returned while another process has the file.
var errLocked = errors.New("the file is locked")

// statusFile is the file that the guard and its probes share. It is not safe for
// concurrent use.
type statusFile struct{ file *os.File }

// openStatusFile opens the file at that path.
func openStatusFile(path string) (*statusFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open the status file: %w", err)
	}
	return &statusFile{f}, nil
}

func (f *statusFile) close() { _ = f.file.Close() }

// update reads the status, lets change work on it and writes it. It never waits:
// it returns errLocked while another process has the file.
func (f *statusFile) update(change func(*probeStatus)) error {
	if err := syscall.Flock(int(f.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return errLocked
		}
		return fmt.Errorf("lock the status file: %w", err)
	}
	defer func() { _ = syscall.Flock(int(f.file.Fd()), syscall.LOCK_UN) }()
	text, err := io.ReadAll(io.NewSectionReader(f.file, 0, maxStatusFile))
	if err != nil {
		return fmt.Errorf("read the status file: %w", err)
	}
	s := parseStatus(string(text))
	change(&s)
	after := formatStatus(s)
	if after == string(text) {
		return nil
	}
	if _, err := f.file.WriteAt([]byte(after), 0); err != nil {
		return fmt.Errorf("write the status file: %w", err)
	}
	if err := f.file.Truncate(int64(len(after))); err != nil {
		return fmt.Errorf("write the status file: %w", err)
	}
	return nil
}

// awaitUpdate is update for a process that can wait a moment.
func (f *statusFile) awaitUpdate(change func(*probeStatus)) error {
	for deadline := time.Now().Add(lockTimeout); ; time.Sleep(lockRetry) {
		err := f.update(change)
		if !errors.Is(err, errLocked) || time.Now().After(deadline) {
			return err
		}
	}
}

// formatStatus writes the messages that may not have arrived, for people, and
// the status after them in the last line.
func formatStatus(s probeStatus) string {
	// A struct of texts, numbers and flags has nothing that cannot be encoded.
	line, _ := json.Marshal(s)
	return s.unreported() + "\n" + string(line) + "\n"
}

// parseStatus reads the output of formatStatus. A file with anything else is one of
// a guard that has not begun.
func parseStatus(text string) probeStatus {
	text = strings.TrimSuffix(text, "\n")
	var s probeStatus
	if json.Unmarshal([]byte(text[strings.LastIndexByte(text, '\n')+1:]), &s) != nil {
		return probeStatus{}
	}
	return s
}
