package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/proposal"
)

// Labels of nodes that select a configuration.
const (
	labelPluginConfig = nvidia.ResourcePrefix + "device-plugin.config"
	labelMIGConfig    = nvidia.ResourcePrefix + "mig.config"
)

// changes are the files by which a plan is rolled out, by name.
type changes map[string]string

// changesOf changes today's objects by the configurations that the plan's nodes select, and writes the order in which to label the nodes:
// those without pods first.
func changesOf(f *demand.Fleet, p *proposal.Plan, o *objects) (changes, error) {
	layouts, err := o.mig.layouts()
	if err != nil {
		return nil, err
	}
	known := len(layouts)
	byNode, divided := map[string][]label{}, map[string]bool{} // by MIG today
	for _, n := range f.Nodes {
		divided[n.Name] = f.Kinds[n.Kind].Strategy == layout.MIG
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if !n.Changed {
			continue
		}
		labels := []label{pluginLabel(n, o.plugin.next.Data)}
		if n.Strategy == layout.MIG || slices.ContainsFunc(n.Names, func(name string) bool { return divided[name] }) {
			labels = append(labels, migLabel(n, layouts))
		}
		for _, name := range n.Names {
			byNode[name] = labels
		}
	}
	if len(layouts) > known {
		if err := o.mig.setLayouts(layouts); err != nil {
			return nil, err
		}
	}
	script, err := rollout(f, byNode)
	out := changes{"rollout.sh": script, "changes.diff": labelDiff(f, byNode)}
	return out, errors.Join(err, o.policy.allow(o.strategies(f, p)), o.plugin.write(pluginFile, out),
		o.mig.write(migFile, out), o.policy.write(policyFile, out))
}

// label is a label of nodes that selects a configuration.
type label struct{ key, value string }

// pluginLabel selects a configuration of the device plugin, which is added to all.
func pluginLabel(n *proposal.Nodes, all map[string]string) label {
	name, text := "whole", "version: v1\n"
	switch n.Strategy {
	case layout.TimeSlicing, layout.MPS:
		field := "mps:"
		if n.Strategy == layout.TimeSlicing {
			field = "timeSlicing:\n    failRequestsGreaterThanOne: true"
		}
		name = fmt.Sprintf("%s-%d", n.Strategy, n.Replicas)
		text = fmt.Sprintf(
			"version: v1\nsharing:\n  %s\n    renameByDefault: true\n    resources:\n    - name: nvidia.com/gpu\n      replicas: %d\n",
			field, n.Replicas)
	case layout.MIG:
		name, text = "mig-mixed", "version: v1\nflags:\n  migStrategy: mixed\n"
	}
	name = unused(all, name, func(there string) bool { return there == text })
	all[name] = text
	return label{labelPluginConfig, name}
}

// migLabel selects a layout of the MIG manager, which is added to all. Devices without instances stay whole.
func migLabel(n *proposal.Nodes, all map[string]any) label {
	var entries []any
	each := n.Devices / max(len(n.Names), 1)
	for device := range each {
		entry := map[string]any{"devices": []int{device}, "mig-enabled": false}
		if device < len(n.Profiles) {
			entry = map[string]any{"devices": []int{device}, "mig-enabled": true, "mig-devices": n.Profiles[device]}
		}
		entries = append(entries, entry)
	}
	name := unused(all, "plan-1", func(any) bool { return false })
	all[name] = entries
	return label{labelMIGConfig, name}
}

// labelDiff is how the labels of nodes change.
func labelDiff(f *demand.Fleet, labels map[string][]label) string {
	b := &strings.Builder{}
	for _, n := range f.Nodes {
		if n.Added || labels[n.Name] == nil {
			continue
		}
		fmt.Fprintf(b, "--- Node %s (today)\n+++ Node %s (with the plan)\n", n.Name, n.Name)
		for _, l := range labels[n.Name] {
			today, labeled := n.Labels[l.key]
			if labeled && today == l.value {
				continue
			}
			if labeled {
				fmt.Fprintf(b, "-metadata.labels[%s]: %q\n", l.key, today)
			}
			fmt.Fprintf(b, "+metadata.labels[%s]: %q\n", l.key, l.value)
		}
	}
	return b.String()
}

// rollout is a script that disrupts no pod: it labels the nodes on which no pod with GPUs is, and lists those to wait for, fewest pods
// first. Nodes that the cluster does not have are left out.
func rollout(f *demand.Fleet, labels map[string][]label) (string, error) {
	nodes := slices.DeleteFunc(slices.Clone(f.Nodes), func(n demand.Node) bool { return n.Added || labels[n.Name] == nil })
	slices.SortFunc(nodes, func(a, b demand.Node) int {
		return cmp.Or(cmp.Compare(a.Running, b.Running), cmp.Compare(a.Name, b.Name))
	})
	b := &strings.Builder{}
	b.WriteString(
		"#!/bin/sh\n# Labels nodes in an order that disrupts no pod. A line that begins with # is for a node on which pods with GPUs run:\n" +
			"# cordon it, wait until they have ended, then run the line.\n" +
			"# First apply the ConfigMaps, and look for pods with GPUs that started after the plan was made: it knows none of them.\nset -e\n")
	for _, n := range nodes {
		if wrong := validation.IsDNS1123Subdomain(n.Name); len(wrong) > 0 { // a shell runs it
			return "", fmt.Errorf("--changes: node %.60q: no cluster has a node of that name: %s", n.Name, wrong[0])
		}
		line := fmt.Sprintf("kubectl label node %s --overwrite", n.Name)
		for _, l := range labels[n.Name] {
			line += " " + l.key + "=" + l.value
		}
		if n.Running > 0 {
			fmt.Fprintf(b, "# kubectl cordon %s   # %d pods with GPUs run there\n# %s && kubectl uncordon %s\n", n.Name, n.Running, line, n.Name)
			continue
		}
		b.WriteString(line + "\n")
	}
	return b.String(), nil
}

// write writes the files into a folder, which it makes. Objects of an earlier plan there are removed.
func (c changes) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("--changes: %w", err)
	}
	for _, name := range []string{pluginFile, migFile, policyFile} {
		if _, there := c[name]; there {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("--changes: %w", err)
		}
	}
	for name, text := range c {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("--changes: %w", err)
		}
	}
	return nil
}
