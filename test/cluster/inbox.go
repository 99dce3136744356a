package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/gpuslice/gpuslice/test/cluster/box"
)

// InBox runs inside in a box (see package box) with all programs of ControlPlane and NodeParts, so that it can call
// StartNode, and returns its exit status. It must be the first call of main. prepare, which may be nil, runs before
// that, outside, and may leave files in the box's folder dir: it is the place to build, since there is no network
// inside. An error that wraps box.ErrUnsupported gives in one line the reason why no node can run on this machine.
//
// If the exit status is not 0, the logs of the cluster's parts are copied to the folder named by
// GPUSLICE_LOGS.
func InBox(ctx context.Context, progress io.Writer, prepare func(ctx context.Context, dir string) error, inside func() int) (int, error) {
	b := box.Box{
		Prepare: func(ctx context.Context, dir string) error {
			bin, err := Build(ctx, progress, append(ControlPlane(), NodeParts()...)...)
			if err != nil {
				return err
			}
			if err := writeBin(dir, bin); err != nil || prepare == nil {
				return err
			}
			return prepare(ctx, dir)
		},
		Inside: func(string) int { return inside() },
		Ended: func(dir string, code int) error {
			if code == 0 || os.Getenv("GPUSLICE_LOGS") == "" {
				return nil
			}
			return keepLogs(dir, os.Getenv("GPUSLICE_LOGS"))
		},
	}
	return b.Run(ctx)
}

// Main is the exit status for TestMain in a package whose tests need a node: it runs them in a box. A machine that
// cannot have one is a failure, unless E2E_OPTIONAL is 1; tests that nobody selected are not run in a box and skip
// themselves (see Wanted).
func Main(m *testing.M, prepare func(ctx context.Context, dir string) error) int {
	if !Wanted("node") {
		return m.Run()
	}
	code, err := InBox(context.Background(), os.Stderr, prepare, m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if errors.Is(err, box.ErrUnsupported) && os.Getenv("E2E_OPTIONAL") == "1" {
		fmt.Fprintln(os.Stderr, "skipped all tests, since E2E_OPTIONAL is 1")
		return 0
	}
	return code
}

// binFile, in a box's folder, names the programs that were built outside.
const binFile = "programs.json"

// AddPrograms builds further targets for the node of a box, such as CertManager. It is for a prepare, with the dir that it gets.
func AddPrograms(ctx context.Context, progress io.Writer, dir string, targets ...Target) error {
	bin, err := readBin(dir)
	if err != nil {
		return err
	}
	more, err := Build(ctx, progress, targets...)
	if err != nil {
		return err
	}
	maps.Copy(bin, more)
	return writeBin(dir, bin)
}

func writeBin(dir string, bin Bin) error {
	text, err := json.Marshal(bin)
	if err != nil {
		return fmt.Errorf("encode programs: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, binFile), text, 0o600); err != nil {
		return fmt.Errorf("note programs: %w", err)
	}
	return nil
}

func readBin(dir string) (Bin, error) {
	text, err := os.ReadFile(filepath.Join(dir, binFile))
	if err != nil {
		return nil, fmt.Errorf("find programs: %w", err)
	}
	var bin Bin
	if err := json.Unmarshal(text, &bin); err != nil {
		return nil, fmt.Errorf("decode programs: %w", err)
	}
	return bin, nil
}

// keepLogs copies the logs in a box's folder to another.
func keepLogs(dir, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make folder for logs: %w", err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return fmt.Errorf("find logs: %w", err)
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(path)), text, 0o644); err != nil {
			return fmt.Errorf("keep log: %w", err)
		}
	}
	return nil
}
