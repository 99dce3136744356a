// Package policyinit is the command that prints a first policy.
package policyinit

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
)

const long = `Print a commented first policy, in the ConfigMap that holds it: of a namespace with -n, else the cluster's default. It changes
nothing by itself, and passes gpuslice policy lint as it stands: begin with enforcementMode audit, see what gpuslice audit
reports, then enforce.`

const example = `  # a file to begin with
  gpuslice policy init -n team-a > team-a.yaml

  # the cluster's default policy, as it stands
  gpuslice policy init | kubectl apply -f -`

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var namespace, system string
	cmd := &cobra.Command{
		Use:     "init [-n NAMESPACE]",
		Short:   "Print a commented first policy",
		Long:    long,
		Example: example,
		RunE: func(*cobra.Command, []string) error {
			if err := check(namespace, system); err != nil {
				return err
			}
			if _, err := io.WriteString(s.Out, document(namespace, system)); err != nil {
				return fmt.Errorf("print the policy: %w", err)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&namespace, "namespace", "n", "", "`NAMESPACE` that the policy governs (default: all that no other policy governs)")
	cli.SystemNamespaceFlag(flags, &system)
	return cmd
}

const template = `apiVersion: v1
kind: ConfigMap
metadata:
  name: NAME
  namespace: SYSTEM
  labels:
    gpuslice.dev/policy: "true"
data:
  policy.yaml: |
    apiVersion: gpuslice.dev/v1

    # The namespaces that it governs. Without this field it is the cluster's default.
    GOVERNS

    # audit reports, warn gives slices and denies nothing, enforce does both. "gpuslice audit" shows what enforce would change.
    enforcementMode: audit

    # opt-in: pods that request a slice, with a label such as gpuslice.dev/memory: "8Gi".
    # transparent: every pod that requests nvidia.com/gpu: 1 gets defaultSlice.
    mode: opt-in

    # Allowed ways to share a device, in order of preference. "gpuslice pools" shows what your nodes offer.
    strategies: [mig, mps, time-slicing]

    # The slice of a pod that names no size.
    # defaultSlice: {memory: 8Gi}

    # Sizes by name: gpuslice.dev/class: small.
    # classes:
    #   small: {memory: 4Gi}
    #   large: {memory: 16Gi, compute: 50}

    # The largest slice of a container and of a pod.
    # limits:
    #   perContainer: {memory: 40Gi}
    #   perPod: {memory: 80Gi}

    # What the pods of a namespace may hold together. "gpuslice quota" shows what is left.
    # quota: {memory: 64Gi, slices: 8}

    # The weakest enforcement that a slice may have: framework, guard, mps, driver or hardware.
    # minimumEnforcement: guard
`

// document is the first policy of a namespace, or of the cluster for the namespace "".
func document(namespace, system string) string {
	name, governs := "default", "# namespaces: {names: [team-a]}"
	if namespace != "" {
		name, governs = configMap(namespace), "namespaces: {names: ["+quoted(namespace)+"]}"
	}
	return strings.NewReplacer("NAME\n", quoted(name)+"\n", "SYSTEM\n", quoted(system)+"\n", "GOVERNS", governs).Replace(template)
}

// configMap is the name of the ConfigMap for a namespace. Those of the cluster's default policy and of gpuslice itself are taken.
func configMap(namespace string) string {
	if namespace == "default" || strings.HasPrefix(namespace, "gpuslice-") {
		return "namespace-" + namespace
	}
	return namespace
}

// quoted is a name as YAML reads it: a number, "on" and "null" are no text without quotes.
func quoted(name string) string {
	if text, err := yaml.Marshal(name); err == nil {
		return strings.TrimSpace(string(text))
	}
	return strconv.Quote(name)
}

// check denies names that no namespace can have.
func check(namespace, system string) error {
	for flag, name := range map[string]string{"--namespace": namespace, "--system-namespace": system} {
		if wrong := validation.IsDNS1123Label(name); name != "" && len(wrong) > 0 {
			return fmt.Errorf("%s %q: no namespace has this name: %s", flag, name, wrong[0])
		}
	}
	return nil
}
