package deploy

import "embed"

// Files are the manifests: NN-*.yaml an installation, 60-policies/*.yaml sample policies.
//
//go:embed [1-9]*.yaml 60-policies/*.yaml
var Files embed.FS
