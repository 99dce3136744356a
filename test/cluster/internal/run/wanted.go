package run

import (
	"os"
	"slices"
	"strings"
)

// Wanted reports whether tests of the given tier ("apiserver" or "node") were selected: they take seconds and, the
// first time, minutes of compiling, so that plain `go test ./...` leaves them out.
func Wanted(tier string) bool {
	return slices.Contains(strings.Split(os.Getenv("GPUSLICE_TEST"), ","), tier)
}
