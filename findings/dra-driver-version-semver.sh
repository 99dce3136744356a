#!/usr/bin/env bash
# One would expect: a claim selects a GPU by its driver version as NVIDIA writes it, semver("580.65.06").
# What happens: the third part has a leading zero, so it is no semantic version. NVIDIA's DRA driver publishes the version through
# Masterminds' semver, which drops the zero: "580.65.6". The CEL library of Kubernetes does not drop it: the selector compiles, and each
# device that it is evaluated for is an error. It works as semver("580.65.6") and as semver("580.65.06", true).
# k8s.io/dynamic-resource-allocation v0.37.2, cel/compile.go; k8s.io/apiserver v0.37.2, pkg/cel/library/semverlib.go;
# github.com/Masterminds/semver/v3 v3.5.0, version.go.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > go.mod <<'END'
module finding

go 1.26

require (
	github.com/Masterminds/semver/v3 v3.5.0
	k8s.io/api v0.37.2
	k8s.io/dynamic-resource-allocation v0.37.2
)
END
cat > main.go <<'END'
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/Masterminds/semver/v3"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

func selected(expression, version string) string {
	compiled := cel.GetCompiler(cel.Features{}).CompileCELExpression(expression, cel.Options{})
	if compiled.Error != nil {
		return "does not compile: " + compiled.Error.Error()
	}
	matches, _, err := compiled.DeviceMatches(context.Background(), cel.Device{Driver: "gpu.nvidia.com",
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"driverVersion": {VersionValue: &version}}})
	if err != nil {
		return "error: " + err.Error()
	}
	return fmt.Sprint(matches)
}

func main() {
	const written = "580.65.06"
	published := semver.MustParse(written).String()
	fmt.Printf("driver %s is published as %s\n", written, published)
	same := published == "580.65.6"
	const attribute = `device.attributes["gpu.nvidia.com"].driverVersion`
	for _, c := range []struct{ expression, want string }{
		{attribute + `.compareTo(semver("580.65.6")) == 0`, "true"},
		{attribute + `.compareTo(semver("580.65.06", true)) == 0`, "true"},
		{attribute + `.compareTo(semver("580.65.06")) >= 0`, `error: Patch number must not contain leading zeroes "06"`},
	} {
		got := selected(c.expression, published)
		fmt.Printf("%-92s %s\n", c.expression, got)
		same = same && got == c.want
	}
	if !same {
		fmt.Println("CHANGED: the behaviour is another one")
		os.Exit(1)
	}
}
END
echo "k8s.io/dynamic-resource-allocation v0.37.2, github.com/Masterminds/semver/v3 v3.5.0"
CGO_ENABLED=0 GOFLAGS=-mod=mod go run -trimpath . 2> err || { cat err; exit 1; }
