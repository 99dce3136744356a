// Command nvidia-runtime imitates NVIDIA's container runtime for a GPU that does not exist.
//
// The real one gives a container the driver's libraries and device nodes when its environment requests devices, and
// then leaves the rest to runc. This one does the same with the content of a file: mounts (a stand-in for
// libnvidia-ml.so.1) and variables. Like the real one it looks at NVIDIA_VISIBLE_DEVICES and
// NVIDIA_DRIVER_CAPABILITIES; unlike it, it gives no device nodes and does not distinguish devices: that is the
// library's business.
//
// It takes runc's command line. Its settings are in a file beside it, named like it with ".json".
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	fmt.Fprintln(os.Stderr, "nvidia-runtime:", run(os.Args))
	os.Exit(1)
}

// run edits the configuration of a container that is about to be made, and becomes runc. It returns only where that fails.
func run(args []string) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	text, err := os.ReadFile(exe + ".json")
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	var s settings
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("decode settings: %w", err)
	}
	if bundle, ok := creates(args[1:]); ok {
		if err := editFile(filepath.Join(bundle, "config.json"), s); err != nil {
			return err
		}
	}
	return fmt.Errorf("run %s: %w", s.Runtime, syscall.Exec(s.Runtime, append([]string{s.Runtime}, args[1:]...), os.Environ()))
}

// creates returns the bundle of the container that runc's arguments say to make, if they do.
func creates(args []string) (bundle string, ok bool) {
	bundle = "."
	for i, a := range args {
		switch {
		case a == "create" || a == "run":
			ok = true
		case (a == "--bundle" || a == "-b") && i+1 < len(args):
			bundle = args[i+1]
		case strings.HasPrefix(a, "--bundle="):
			bundle = strings.TrimPrefix(a, "--bundle=")
		}
	}
	return bundle, ok
}

func editFile(path string, s settings) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read container: %w", err)
	}
	s.bundle = filepath.Dir(path)
	edited, err := edit(text, s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, edited, 0o644); err != nil {
		return fmt.Errorf("write container: %w", err)
	}
	return nil
}
