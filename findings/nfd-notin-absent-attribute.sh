#!/usr/bin/env bash
# One would expect: an expression "NotIn" of a NodeFeatureRule means what it means in a pod's node affinity: a node that lacks the
# attribute matches, as no value is in the list.
# What happens: node-feature-discovery's NotIn needs the attribute. A rule "every driver but 550.54.14" passes over the nodes without a
# driver, while the same words in a node affinity take them.
# sigs.k8s.io/node-feature-discovery v0.18.3, pkg/apis/nfd/nodefeaturerule/expression.go (evaluateMatchExpression).
# Beside it, as the scheduler does: k8s.io/component-helpers v0.37.2, scheduling/corev1/nodeaffinity.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > go.mod <<'END'
module finding

go 1.26

require (
	k8s.io/api v0.37.2
	k8s.io/apimachinery v0.37.2
	k8s.io/client-go v0.37.2
	k8s.io/component-helpers v0.37.2
	k8s.io/klog/v2 v2.140.0
	sigs.k8s.io/node-feature-discovery v0.18.3
	sigs.k8s.io/node-feature-discovery/api/nfd v0.18.3
)
END
cat > main.go <<'END'
package main

import (
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
	"sigs.k8s.io/node-feature-discovery/pkg/apis/nfd/nodefeaturerule"
)

func main() {
	same := true
	for _, c := range []struct {
		title          string
		attributes     map[string]string
		rule, affinity bool
	}{
		{"the listed version", map[string]string{"driver": "550.54.14"}, false, false},
		{"another version", map[string]string{"driver": "580.65.06"}, true, true},
		{"no such attribute", map[string]string{"other": "x"}, false, true},
	} {
		features := v1alpha1.NewFeatures()
		features.Attributes["local.label"] = v1alpha1.NewAttributeFeatures(c.attributes)
		out, err := nodefeaturerule.Execute(&v1alpha1.Rule{
			Name:   "other-drivers",
			Labels: map[string]string{"example.com/other-driver": "true"},
			MatchFeatures: v1alpha1.FeatureMatcher{{Feature: "local.label", MatchExpressions: &v1alpha1.MatchExpressionSet{
				"driver": {Op: v1alpha1.MatchNotIn, Value: v1alpha1.MatchValue{"550.54.14"}}}}},
		}, features, true)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		requirement := corev1.NodeSelectorRequirement{Key: "driver", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"550.54.14"}}
		selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{requirement}}}})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		rule, affinity := len(out.Labels) == 1, selector.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: c.attributes}})
		fmt.Printf("driver NotIn [550.54.14], %-18s  NodeFeatureRule: %-5t  node affinity: %t\n", c.title, rule, affinity)
		same = same && rule == c.rule && affinity == c.affinity
	}
	if !same {
		fmt.Println("CHANGED: the behaviour is another one")
		os.Exit(1)
	}
}
END
echo "sigs.k8s.io/node-feature-discovery v0.18.3, k8s.io/component-helpers v0.37.2"
CGO_ENABLED=0 GOFLAGS=-mod=mod go run -trimpath . 2> err || { cat err; exit 1; }
