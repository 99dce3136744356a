#!/usr/bin/env bash
# One would expect: NVIDIA_VISIBLE_DEVICES is a list of GPUs, or one of the words all, none and void. A word within a list is an error,
# or means the same wherever it stands.
# What happens: the first of "all" and "none" decides and the rest of the list is dropped, so "all,none" is every GPU, "none,all" is no
# GPU, and "0,all" is every GPU. "void" counts before both, at any place. ("none" is one empty entry: the driver's files without a GPU.)
# github.com/NVIDIA/nvidia-container-toolkit v1.20.2, internal/config/image/cuda_image.go, devices.go.
# The module's name lets it import the internal package.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > go.mod <<'END'
module github.com/NVIDIA/nvidia-container-toolkit/finding

go 1.26

require github.com/NVIDIA/nvidia-container-toolkit v1.20.2
END
cat > main.go <<'END'
package main

import (
	"fmt"
	"os"

	"github.com/NVIDIA/nvidia-container-toolkit/internal/config/image"
)

func main() {
	same := true
	for _, c := range []struct{ value, want string }{
		{"0,1", `["0" "1"]`},
		{"all", `["all"]`},
		{"all,none", `["all"]`},
		{"none,all", `[""]`},
		{"0,all", `["all"]`},
		{"all,void", `[]`},
		{"none,void", `[]`},
	} {
		variables := map[string]string{"NVIDIA_VISIBLE_DEVICES": c.value}
		container, err := image.New(image.WithEnvMap(variables), image.WithAcceptEnvvarUnprivileged(true))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		got := fmt.Sprintf("%q", container.VisibleDevices())
		fmt.Printf("NVIDIA_VISIBLE_DEVICES=%-10s devices %s\n", c.value, got)
		same = same && got == c.want
	}
	if !same {
		fmt.Println("CHANGED: the behaviour is another one")
		os.Exit(1)
	}
}
END
echo "github.com/NVIDIA/nvidia-container-toolkit v1.20.2"
CGO_ENABLED=0 GOFLAGS=-mod=mod go run -trimpath . 2> err || { cat err; exit 1; }
