package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuslice/gpuslice/test/cluster/internal/run"
)

// cacheRoot returns a writable folder outside the checkout that survives this process: $GPUSLICE_CACHE,
// else the user's cache folder, else one under the temporary folder, so that it works without HOME.
func cacheRoot() (string, error) {
	if dir := os.Getenv("GPUSLICE_CACHE"); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("find GPUSLICE_CACHE: %w", err)
		}
		return abs, ownFolder(abs)
	}
	if dir, err := os.UserCacheDir(); err == nil {
		dir = filepath.Join(dir, "gpuslice")
		if ownFolder(dir) == nil {
			return dir, nil
		}
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("gpuslice-cache-%d", os.Getuid()))
	return dir, ownFolder(dir)
}

// ownFolder makes dir if it is missing and returns an error unless it is ours to write. Files in the cache are
// executed, so a folder that another user prepared is denied.
func ownFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make cache folder: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fmt.Errorf("stat cache folder %s: %w", dir, err)
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("cache folder %s belongs to user %d: set GPUSLICE_CACHE to a folder of your own", dir, st.Uid)
	}
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return fmt.Errorf("write to cache folder %s: %w", dir, err)
	}
	return nil
}

// lockFile takes the advisory lock of path, calling waiting once if somebody else holds it. The kernel
// releases it with the process, however that ends; the returned function releases it earlier.
func lockFile(ctx context.Context, path string, waiting func()) (func(), error) {
	poll := time.NewTicker(200 * time.Millisecond)
	defer poll.Stop()
	for told := false; ; told = true {
		f, err := run.TryLock(path)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, err
		}
		if !told {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock %s: %w", path, context.Cause(ctx))
		case <-poll.C:
		}
	}
}
