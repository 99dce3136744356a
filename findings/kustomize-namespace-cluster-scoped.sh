#!/usr/bin/env bash
# One would expect: a kustomization's "namespace:" leaves cluster-scoped resources without a namespace, by whatever API they are.
# What happens: kustomize has the schema of Kubernetes 1.21 built in, and a few later kinds. It treats each other kind as namespaced.
# FlowSchema v1, PriorityLevelConfiguration v1, MutatingAdmissionPolicy v1 and DeviceClass v1 come out with metadata.namespace, beside a
# ValidatingAdmissionPolicy and a ClusterRole without.
# sigs.k8s.io/kustomize/api v0.21.2, sigs.k8s.io/kustomize/kyaml v0.21.2, openapi/openapi.go (IsNamespaceScoped), kubernetesapi/v1_21_2.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > go.mod <<'END'
module finding

go 1.26

require (
	sigs.k8s.io/kustomize/api v0.21.2
	sigs.k8s.io/kustomize/kyaml v0.21.2
)
END
cat > main.go <<'END'
package main

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	kinds := []struct {
		version, kind string
		namespace     bool // what kustomize adds
	}{
		{"rbac.authorization.k8s.io/v1", "ClusterRole", false},
		{"scheduling.k8s.io/v1", "PriorityClass", false},
		{"flowcontrol.apiserver.k8s.io/v1", "FlowSchema", true},
		{"flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", true},
		{"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", false},
		{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", false},
		{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", false},
		{"admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", true},
		{"resource.k8s.io/v1", "DeviceClass", true},
	}
	fs := filesys.MakeFsInMemory()
	text := "namespace: team-a\nresources:\n"
	for i, k := range kinds {
		file := fmt.Sprintf("r%d.yaml", i)
		text += "- " + file + "\n"
		if err := fs.WriteFile(file, []byte(fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: x}\n", k.version, k.kind))); err != nil {
			panic(err)
		}
	}
	if err := fs.WriteFile("kustomization.yaml", []byte(text)); err != nil {
		panic(err)
	}
	out, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, ".")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	same := out.Size() == len(kinds)
	for i, r := range out.Resources() {
		text := r.MustYaml()
		added := strings.Contains(text, "namespace: team-a")
		fmt.Printf("%-48s %-34s gets metadata.namespace: %t\n", r.GetApiVersion(), r.GetKind(), added)
		same = same && added == kinds[i].namespace
	}
	if !same {
		fmt.Println("CHANGED: the behaviour is another one")
		os.Exit(1)
	}
}
END
echo "sigs.k8s.io/kustomize/api v0.21.2"
CGO_ENABLED=0 GOFLAGS=-mod=mod go run -trimpath . 2> err || { cat err; exit 1; }
