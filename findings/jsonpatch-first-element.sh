#!/usr/bin/env bash
# One would expect: the patch of an admission webhook that puts one container before nine others is one operation, "add" at index 0.
# What happens: the library behind controller-runtime's PatchResponseFromRaw compares lists by index. It adds the last container once
# more at the end, and rewrites name, image and whatever else differs of each one before it. The order of the operations is another one
# from call to call (it walks Go maps), so two answers to one request can differ in bytes.
# gomodules.xyz/jsonpatch/v2 v2.5.0, jsonpatch.go (handleValues, diff).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > go.mod <<'END'
module finding

go 1.26

require gomodules.xyz/jsonpatch/v2 v2.5.0
END
cat > main.go <<'END'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"gomodules.xyz/jsonpatch/v2"
)

type container struct {
	Name  string   `json:"name"`
	Image string   `json:"image"`
	Args  []string `json:"args,omitempty"`
}

func pod(containers []container) []byte {
	text, err := json.Marshal(map[string]any{"spec": map[string]any{"initContainers": containers}})
	if err != nil {
		panic(err)
	}
	return text
}

func main() {
	var nine []container
	for i := range 9 {
		number := fmt.Sprint(i)
		nine = append(nine, container{Name: "step-" + number, Image: "registry.example/step:" + number, Args: []string{number}})
	}
	before, after := pod(nine), pod(append([]container{{Name: "first", Image: "registry.example/first:1"}}, nine...))
	texts := map[string]bool{}
	count := map[string]int{}
	var added string
	for round := range 200 {
		patch, err := jsonpatch.CreatePatch(before, after)
		if err != nil {
			panic(err)
		}
		text, err := json.Marshal(patch)
		if err != nil {
			panic(err)
		}
		texts[string(text)] = true
		for _, o := range patch {
			if round == 0 {
				count[o.Operation]++
				if o.Operation == "add" && o.Path == "/spec/initContainers/9" {
					added = fmt.Sprint(o.Value.(map[string]any)["name"])
				}
			}
		}
	}
	fmt.Printf("one container put before nine: %d add, %d replace, %d remove; the one that is added at /spec/initContainers/9 is %q\n",
		count["add"], count["replace"], count["remove"], added)
	fmt.Println("more than one text of the patch in 200 calls:", len(texts) > 1)
	if count["add"] != 1 || count["replace"] != 26 || count["remove"] != 1 || added != "step-8" || len(texts) < 2 {
		fmt.Println("CHANGED: the behaviour is another one")
		os.Exit(1)
	}
}
END
echo "gomodules.xyz/jsonpatch/v2 v2.5.0"
CGO_ENABLED=0 GOFLAGS=-mod=mod go run -trimpath . 2> err || { cat err; exit 1; }
