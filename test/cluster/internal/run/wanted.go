package run

import (
	"os"
	"slices"
	"strings"
)

// Wanted reports whether tests that need the given tier ("apiserver" or "node") were asked for: they take
// seconds and, the first time, minutes of compiling, so that plain `go test ./...` leaves them out.
func Wanted(tier string) bool {
	return slices.Contains(strings.Split(os.Getenv("GPUSLICE_TEST"), ","), tier)
}
