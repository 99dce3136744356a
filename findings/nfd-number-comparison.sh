#!/usr/bin/env bash
# One would expect: a NodeFeatureRule whose comparison does not hold for one attribute leaves out what hangs on it. GtLt and GeLe are
# spelt as "greater, less" and "greater or equal, less".
# What happens: Gt, Ge, Lt, Le, GtLt and GeLe read whole numbers alone. An attribute of "40.5" is an error, and the whole rule gives
# nothing, though its other alternative (matchAny) holds. GtLt leaves out both bounds and GeLe takes both, the upper one too.
# sigs.k8s.io/node-feature-discovery v0.18.3, pkg/apis/nfd/nodefeaturerule/expression.go (evaluateMatchExpression), rule.go (Execute).
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

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
	"sigs.k8s.io/node-feature-discovery/pkg/apis/nfd/nodefeaturerule"
)

// result is "label", "no label" or the error, for a node whose attribute memory has this value and whose attribute model is A100. The
// rule holds if either the memory or the model does.
func result(memory string, op v1alpha1.MatchOp, bounds []string, model string) string {
	features := v1alpha1.NewFeatures()
	features.Attributes["local.label"] = v1alpha1.NewAttributeFeatures(map[string]string{"memory": memory, "model": "A100"})
	either := func(name string, e *v1alpha1.MatchExpression) v1alpha1.MatchAnyElem {
		return v1alpha1.MatchAnyElem{MatchFeatures: v1alpha1.FeatureMatcher{
			{Feature: "local.label", MatchExpressions: &v1alpha1.MatchExpressionSet{name: e}}}}
	}
	out, err := nodefeaturerule.Execute(&v1alpha1.Rule{
		Name:   "large",
		Labels: map[string]string{"example.com/large": "true"},
		MatchAny: []v1alpha1.MatchAnyElem{
			either("memory", &v1alpha1.MatchExpression{Op: op, Value: bounds}),
			either("model", &v1alpha1.MatchExpression{Op: v1alpha1.MatchIn, Value: v1alpha1.MatchValue{model}}),
		},
	}, features, true)
	if err != nil {
		return "error: " + err.Error()
	}
	if len(out.Labels) == 0 {
		return "no label"
	}
	return "label"
}

func main() {
	same := true
	for _, c := range []struct {
		memory string
		op     v1alpha1.MatchOp
		bounds []string
		model  string
		want   string
	}{
		{"41", v1alpha1.MatchGt, []string{"40"}, "none", "label"},
		{"40", v1alpha1.MatchGt, []string{"40"}, "A100", "label"},
		{"40.5", v1alpha1.MatchGt, []string{"40"}, "A100", `error: not a number "40.5"`},
		{"16", v1alpha1.MatchGtLt, []string{"16", "80"}, "none", "no label"},
		{"80", v1alpha1.MatchGtLt, []string{"16", "80"}, "none", "no label"},
		{"16", v1alpha1.MatchGeLe, []string{"16", "80"}, "none", "label"},
		{"80", v1alpha1.MatchGeLe, []string{"16", "80"}, "none", "label"},
	} {
		got := result(c.memory, c.op, c.bounds, c.model)
		fmt.Printf("memory=%-5s model=A100, rule: memory %s %v or model In [%s]: %s\n", c.memory, c.op, c.bounds, c.model, got)
		same = same && got == c.want
	}
	if !same {
		fmt.Println("CHANGED: the behaviour is another one")
		os.Exit(1)
	}
}
END
echo "sigs.k8s.io/node-feature-discovery v0.18.3"
CGO_ENABLED=0 GOFLAGS=-mod=mod go run -trimpath . 2> err || { cat err; exit 1; }
