package vm

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
)

// archive writes what the kernel unpacks into memory: files in the "newc" form of cpio.
type archive struct {
	out     *bufio.Writer
	entries int
	folders map[string]bool
}

// Modes of entries: the type of the file, and who may do what.
const (
	folderMode = 0o040755
	fileMode   = 0o100755
	deviceMode = 0o020600
)

// writeArchive writes the files, keyed by their paths in the machine, and the device that the first process is given.
func writeArchive(w io.Writer, files map[string]string) error {
	a := &archive{out: bufio.NewWriter(w), folders: map[string]bool{"/": true}}
	a.folder("/dev")
	a.entry("/dev/console", deviceMode, 0, 5, 1)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		a.folder(path.Dir(name))
		if err := a.file(name, files[name]); err != nil {
			return err
		}
	}
	a.entry("/TRAILER!!!", 0, 0, 0, 0)
	return a.out.Flush()
}

// folder adds a folder and those around it.
func (a *archive) folder(name string) {
	if a.folders[name] {
		return
	}
	a.folder(path.Dir(name))
	a.folders[name] = true
	a.entry(name, folderMode, 0, 0, 0)
}

func (a *archive) file(name, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	a.entry(name, fileMode, len(text), 0, 0)
	a.padded(text)
	return nil
}

// entry writes a header. What goes wrong shows when the archive is flushed.
func (a *archive) entry(name string, mode, size, major, minor int) {
	a.entries++
	name = name[1:] + "\x00"
	header := "070701"
	for _, field := range []int{a.entries, mode, 0, 0, 1, 0, size, 0, 0, major, minor, len(name), 0} {
		header += fmt.Sprintf("%08x", field)
	}
	a.padded([]byte(header + name))
}

// padded writes text and what is missing to a multiple of four bytes.
func (a *archive) padded(text []byte) {
	a.out.Write(text)
	a.out.Write(make([]byte, -len(text)&3))
}
