package clusters

import (
	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
)

// The guard that is planned without a cluster, unless --guard-image names another, or none.
const (
	defaultGuard = "gpuslice/guard"
	noGuard      = "none"
)

// Flags name the cluster for which a command answers.
type Flags struct {
	Kube                        kube.Flags
	Policies, Nodes, Namespaces []string
	GuardImage                  string
	Needed                      bool // the command needs a live cluster, whatever files say

	tenantPolicies  []string
	namespaceLabels []string
}

// Register registers the flags of which a cluster is made. namespace describes -n.
func (f *Flags) Register(cmd *cobra.Command, s cli.Streams, namespace string) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.Policies, "policies", nil,
		"`FILE` or directory of policies: bare documents or ConfigMaps, Namespace objects beside them; may be repeated")
	flags.StringArrayVar(&f.tenantPolicies, "tenant-policy", nil,
		"`FILE` of a tenant's own document, which tightens the policy of its namespace; bare: of every namespace; may be repeated")
	flags.StringArrayVar(&f.Nodes, "nodes", nil, "`FILE` or directory of nodes, as kubectl get nodes -o yaml prints them, RuntimeClasses, DeviceClasses, ResourceSlices and the GPU Operator's ClusterPolicy beside them; may be repeated")
	flags.StringArrayVar(&f.Namespaces, "namespaces", nil,
		"`FILE` or directory of Namespace objects: policies and Pod Security select by their labels; may be repeated")
	flags.StringArrayVar(&f.namespaceLabels, "namespace-label", nil, "a label of the objects' namespace, `KEY=VALUE`; may be repeated")
	f.Kube.RegisterInstalled(cmd, s, namespace)
	flags.StringVar(&f.GuardImage, "guard-image", "",
		"`IMAGE` of the guard; none: no guard is planned or written (default: that of the cluster's installation; without a cluster "+
			defaultGuard+")")
}

// FromFiles reports whether any file takes the place of a live cluster.
func (f *Flags) FromFiles() bool { return len(f.Policies)+len(f.Nodes)+len(f.Namespaces) > 0 }

// Live reports whether a cluster is read for objects that no file gives: if the command line names one, or no file
// about one.
func (f *Flags) Live() bool {
	return f.Needed || f.Kube.Named() || !f.FromFiles()
}
