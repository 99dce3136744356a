package deploy

import "embed"

// Files are the manifests: *.yaml an installation, 60-policies/*.yaml sample policies, certmanager/*.yaml what
// cert-manager needs to be the source of the certificate.
//
//go:embed *.yaml 60-policies/*.yaml certmanager/*.yaml
var Files embed.FS
