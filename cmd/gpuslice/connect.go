package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/kube"
)

// connect finds the cluster of the flags for a command that can do with files instead. Warnings of the API server go to
// out.
func connect(flags *kube.Flags, out io.Writer) (*kube.Connection, error) {
	connection, err := flags.Connect(buildVersion(), out)
	if errors.Is(err, kube.ErrNoCluster) {
		return nil, fmt.Errorf("%w, or give files instead: --policies FILE --nodes FILE", err)
	}
	return connection, err
}
