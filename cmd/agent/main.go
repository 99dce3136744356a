package main

import (
	"context"
	"os"

	"github.com/gpuslice/gpuslice/cmd/component"
)

func main() {
	component.Main(func(ctx context.Context) int {
		return execute(ctx, os.Args[1:], os.Stdout, os.Stderr, os.LookupEnv, run)
	})
}
