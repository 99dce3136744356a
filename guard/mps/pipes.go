package mps

import (
	"os"
	"path/filepath"
	"slices"
)

// controlPipe is the socket of a control daemon in its pipe directory.
const controlPipe = "control"

// PipeDirectories returns the pipe directories of the daemons below some
// directories: each itself, one below it, or "NAME/pipe", as NVIDIA's device
// plugin lays them out.
func PipeDirectories(below []string) []string {
	var found []string
	for _, directory := range below {
		for _, pattern := range []string{"", "*", "*/pipe"} {
			pipes, err := filepath.Glob(filepath.Join(directory, pattern, controlPipe))
			if err != nil {
				continue // a name with brackets that do not match
			}
			for _, pipe := range pipes {
				if info, err := os.Lstat(pipe); err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 {
					found = append(found, filepath.Dir(pipe))
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
