package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// room marks a command line whose third and fourth word are a title and room for one.
const room = "title:"

// title is the word in this process's own command line that shows its memory.
type title struct {
	digits *uint64 // eight decimal digits, aligned, so that one store changes all
}

// titled returns the arguments of the script, the word that the image before this one left,
// and the room for a title; without room it replaces the process by itself with some,
// and does not return.
func titled(args []string) (script []string, left, space []byte, err error) {
	if len(args) > 3 && args[1] == room {
		return args[4:], writable(args[2]), writable(args[3]), nil
	}
	if len(args) == 0 {
		return nil, nil, nil, errors.New("start without a program name")
	}
	return nil, nil, nil, restart(args[0], "", args[1:])
}

// writable is an argument as the memory that it is.
func writable(arg string) []byte { return unsafe.Slice(unsafe.StringData(arg), len(arg)) }

// restart replaces the process by a new image of itself, whose command line has the word
// from its first moment.
func restart(name, word string, args []string) error {
	argv := append([]string{name, room, word, strings.Repeat("x", 160)}, args...)
	if err := syscall.Exec(image(), argv, os.Environ()); err != nil {
		return fmt.Errorf("run itself again: %w", err)
	}
	return nil
}

// image is this program's file, by a name from which the kernel takes the process's, or where
// there is no such name any more the link that always serves.
func image() string {
	path, err := os.Executable()
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return "/proc/self/exe"
	}
	return path
}

// newTitle writes a word that holds so much into the room, in place of the one that was left.
//
// The room is memory that the kernel gave to this process to write to, though Go knows
// it as a string: the runtime makes os.Args without copying.
func newTitle(left, space []byte, s *script, amount mebibytes) (*title, error) {
	before, after := s.word()
	start := 0
	for uintptr(unsafe.Pointer(&space[start+len(before)]))%8 != 0 {
		start++
	}
	if start+len(before)+8+len(after) >= len(space) {
		return nil, fmt.Errorf("write %q to the command line: too long", before)
	}
	clear(space)
	at := start + len(before)
	t := &title{digits: (*uint64)(unsafe.Pointer(&space[at]))}
	copy(space[at+8:], after)
	t.hold(amount)
	clear(left)
	copy(space[start:], before)
	return t, nil
}

// word is the text before and after the amount.
func (s *script) word() (before, after string) {
	before, after = s.device+"=", "MiB/"+s.kind
	if s.node != "" {
		before = s.node + "/" + before
	}
	return before, after
}

// hold sets how much the process holds.
func (t *title) hold(amount mebibytes) {
	var text [8]byte
	copy(text[:], fmt.Sprintf("%08d", int(amount)))
	atomic.StoreUint64(t.digits, binary.NativeEndian.Uint64(text[:]))
}
