package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/kube"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

// The guard's resources where --guard-image asks for one; a cluster's installation may set others.
const (
	guardCPU    = "20m"
	guardMemory = "64Mi"
)

// clusterFlags say what cluster a question is about.
type clusterFlags struct {
	kube                        kube.Flags
	policies, nodes, namespaces []string
	tenantPolicies              []string
	namespaceLabels             []string
	systemNamespace             string
	guardImage                  string
	needed                      bool // the question is about a cluster, whatever files say
}

// subjectFlags say what a question is about and how the answer is printed.
type subjectFlags struct {
	clusterFlags
	filenames []string
	server    bool
	output    string
}

// live says that a cluster is asked for what no file gives: where the command line names one, and where it names no file
// about one at all.
func (f *clusterFlags) live() bool {
	return f.needed || f.kube.Named() || len(f.policies)+len(f.nodes)+len(f.namespaces) == 0
}

func (f *subjectFlags) register(cmd *cobra.Command, outputs ...string) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.filenames, "filename", "f", nil, "`FILE`, directory (*.yaml, *.yml, *.json, recursively) or - for standard input; may be repeated")
	f.clusterFlags.register(flags, "of the objects that name none (default: the context's, else \"default\")")
	flags.BoolVar(&f.server, "server", false, "ask the API server by a dry-run create, which asks the webhooks that are really there; needs the right to create the object")
	flags.StringVarP(&f.output, "output", "o", outputs[0], "`FORMAT`: "+strings.Join(outputs, ", "))
	cmd.Args = noArguments
	cmd.PreRunE = func(*cobra.Command, []string) error { return f.check(outputs) }
	completeNames(cmd, &f.kube, cmd.Name() == "explain")
}

// register declares what a cluster is made of. namespace says what -n is for.
func (f *clusterFlags) register(flags *pflag.FlagSet, namespace string) {
	flags.StringArrayVar(&f.policies, "policies", nil, "`FILE` or directory of policies: bare documents or ConfigMaps, Namespace objects beside them; may be repeated")
	flags.StringArrayVar(&f.tenantPolicies, "tenant-policy", nil, "`FILE` of a tenant's own document, which tightens the policy of its namespace; bare: of every namespace; may be repeated")
	flags.StringArrayVar(&f.nodes, "nodes", nil, "`FILE` or directory of nodes, as kubectl get nodes -o yaml prints them; may be repeated")
	flags.StringArrayVar(&f.namespaces, "namespaces", nil, "`FILE` or directory of Namespace objects: policies and Pod Security look at their labels; may be repeated")
	flags.StringArrayVar(&f.namespaceLabels, "namespace-label", nil, "a label of the objects' namespace, `KEY=VALUE`; may be repeated")
	f.kube.RegisterNamespace(flags, namespace)
	f.kube.Register(flags)
	flags.StringVar(&f.systemNamespace, "system-namespace", api.SystemNamespace, "`NAMESPACE` whose policy ConfigMaps govern")
	flags.StringVar(&f.guardImage, "guard-image", "", "`IMAGE` of the guard; without it no guard is planned or written (default: with a cluster, that of its installation)")
}

func (f *subjectFlags) check(outputs []string) error {
	if len(f.filenames) == 0 {
		return errors.New("nothing to read: name it with -f FILE, -f DIRECTORY or -f -")
	}
	if f.server && len(f.policies)+len(f.nodes)+len(f.namespaces) > 0 {
		return errors.New("--server asks the cluster as it is: leave out --policies, --nodes and --namespaces")
	}
	return checkOutput(f.output, outputs)
}

func checkOutput(output string, accepted []string) error {
	if slices.Contains(accepted, output) {
		return nil
	}
	return fmt.Errorf("-o %q: accepted: %s", output, strings.Join(accepted, ", "))
}

// engine makes the engine that the flags ask for.
func (f *subjectFlags) engine(c *cluster) *engine {
	fixed := f.kube.Namespace
	return &engine{cluster: c, namespace: cmp.Or(fixed, c.namespace, metav1.NamespaceDefault), fixed: fixed != "", decide: policies.Decide}
}
