package deploy

import "embed"

// Files are the manifests: *.yaml an installation, 60-policies/*.yaml sample policies.
//
//go:embed *.yaml 60-policies/*.yaml
var Files embed.FS
