package deploy

import "embed"

// Files are the manifests: NN-*.yaml an installation, 60-policies/*.yaml sample policies, certmanager/*.yaml the needs
// of cert-manager as the source of the certificate, agent/*.yaml the agent of each node.
//
//go:embed [1-9]*.yaml 60-policies/*.yaml certmanager/*.yaml agent/*.yaml
var Files embed.FS
