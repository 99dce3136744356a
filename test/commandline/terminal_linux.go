package commandline

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Pseudoterminal returns a terminal, and the screen where what is printed on it can be read.
func Pseudoterminal(t *testing.T) (terminal, screen *os.File) {
	t.Helper()
	open := func(path string) *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Skipf("needs a Pseudoterminal: %v", err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	screen = open("/dev/ptmx")
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal = open(fmt.Sprint("/dev/pts/", number))
	if _, err := term.MakeRaw(int(terminal.Fd())); err != nil { // prints what is written
		t.Fatal(err)
	}
	return terminal, screen
}

// Shown is what a screen shows next.
func Shown(t *testing.T, screen *os.File) string {
	t.Helper()
	text := make([]byte, 4096)
	n, err := screen.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(text[:n])
}
