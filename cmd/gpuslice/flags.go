package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/policies"
)

// The guard's resources where --guard-image asks for one; a cluster's installation may set others.
const (
	guardCPU    = "20m"
	guardMemory = "64Mi"
)

// clusterFlags say what cluster a question is about.
type clusterFlags struct {
	policies, nodes, namespaces []string
	tenantPolicies              []string
	namespaceLabels             []string
	systemNamespace             string
	guardImage                  string
}

// subjectFlags say what a question is about and how the answer is printed.
type subjectFlags struct {
	clusterFlags
	filenames []string
	namespace string
	output    string
}

func (f *subjectFlags) register(cmd *cobra.Command, outputs ...string) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.filenames, "filename", "f", nil, "`FILE`, directory (*.yaml, *.yml, *.json, recursively) or - for standard input; may be repeated")
	flags.StringArrayVar(&f.policies, "policies", nil, "`FILE` or directory of policies: bare documents or ConfigMaps, Namespace objects beside them; may be repeated")
	flags.StringArrayVar(&f.tenantPolicies, "tenant-policy", nil, "`FILE` of a tenant's own document, which tightens the policy of its namespace; bare: of every namespace; may be repeated")
	flags.StringArrayVar(&f.nodes, "nodes", nil, "`FILE` or directory of nodes, as kubectl get nodes -o yaml prints them; may be repeated")
	flags.StringArrayVar(&f.namespaces, "namespaces", nil, "`FILE` or directory of Namespace objects: policies and Pod Security look at their labels; may be repeated")
	flags.StringArrayVar(&f.namespaceLabels, "namespace-label", nil, "a label of the objects' namespace, `KEY=VALUE`; may be repeated")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "`NAMESPACE` of the objects that name none (default \"default\")")
	flags.StringVar(&f.systemNamespace, "system-namespace", policies.SystemNamespace, "`NAMESPACE` whose policy ConfigMaps govern")
	flags.StringVar(&f.guardImage, "guard-image", "", "`IMAGE` of the guard; without it no guard is planned or written")
	flags.StringVarP(&f.output, "output", "o", outputs[0], "`FORMAT`: "+strings.Join(outputs, ", "))
	cmd.Args = noArguments
	cmd.PreRunE = func(*cobra.Command, []string) error { return f.check(outputs) }
}

func (f *subjectFlags) check(outputs []string) error {
	if len(f.filenames) == 0 {
		return errors.New("nothing to read: name it with -f FILE, -f DIRECTORY or -f -")
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
	e := &engine{cluster: c, namespace: f.namespace, fixed: f.namespace != "", decide: policies.Decide}
	if e.namespace == "" {
		e.namespace = "default"
	}
	return e
}
