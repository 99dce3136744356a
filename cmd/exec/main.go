// Command exec starts a container's own command with its folder first in PYTHONPATH, so that Python finds the shim there
// and everything that the image itself put into the variable after it:
//
//	gpuslice-exec PROGRAM [ARGUMENT...]
//	gpuslice-exec --record FILE
//
// The second form starts nothing: it writes the variable, as it would be, to a file that the kubelet reads.
//
// It is static, runs in any image, and replaces itself by the program: the process stays the one that the kubelet started.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// Exit codes, as a shell's.
const (
	exitUsage    = 2
	exitCannot   = 126
	exitNotFound = 127
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == limits.RecordOption {
		if err := record(os.Args[2], os.Environ()); err != nil {
			fmt.Fprintln(os.Stderr, "gpuslice-exec:", err)
			os.Exit(exitCannot)
		}
		return
	}
	code, err := start(os.Args[1:], os.Environ())
	fmt.Fprintln(os.Stderr, "gpuslice-exec:", err)
	os.Exit(code)
}

// start does not return where the program could be started.
func start(command, environment []string) (int, error) {
	if len(command) == 0 {
		return exitUsage, errors.New("no program to start")
	}
	program, err := exec.LookPath(command[0])
	if err != nil && !errors.Is(err, exec.ErrDot) { // a PATH with the working folder in it is the image's own affair
		return exitNotFound, err
	}
	return exitCannot, fmt.Errorf("start %s: %w", program, syscall.Exec(program, command, withFolder(environment)))
}

// withFolder puts the shim's folder before the present value of PYTHONPATH.
func withFolder(environment []string) []string {
	const name = "PYTHONPATH="
	out, value := make([]string, 0, len(environment)+1), limits.ShimFolder
	for _, v := range environment {
		theirs, found := strings.CutPrefix(v, name)
		if !found {
			out = append(out, v)
		} else if theirs != "" {
			value = limits.ShimFolder + string(filepath.ListSeparator) + theirs
		}
	}
	return append(out, name+value)
}
