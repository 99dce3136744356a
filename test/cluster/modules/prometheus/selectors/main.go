// Command selectors reads PromQL expressions, a JSON list of texts, and prints for each the metrics that it selects, each
// with the labels that the expression names with it.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var expressions []string
	if err := json.NewDecoder(os.Stdin).Decode(&expressions); err != nil {
		return fmt.Errorf("read expressions: %w", err)
	}
	found := make([]map[string][]string, 0, len(expressions))
	for _, text := range expressions {
		expression, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			return fmt.Errorf("parse %q: %w", text, err)
		}
		found = append(found, selected(expression))
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

// selected are the metrics of an expression with the labels that their matchers name, and those that an aggregation
// around them or a binary operation beside them groups by.
func selected(expression parser.Expr) map[string][]string {
	sets := map[string]map[string]bool{}
	parser.Inspect(expression, func(node parser.Node, path []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		names := map[string]bool{}
		for _, m := range selector.LabelMatchers {
			if m.Name != labels.MetricName {
				names[m.Name] = true
			}
		}
		for _, above := range path {
			if a, ok := above.(*parser.AggregateExpr); ok && !a.Without {
				for _, name := range a.Grouping {
					names[name] = true
				}
			}
		}
		if sets[selector.Name] == nil {
			sets[selector.Name] = map[string]bool{}
		}
		maps.Copy(sets[selector.Name], names)
		return nil
	})
	out := map[string][]string{}
	for metric, names := range sets {
		out[metric] = slices.Sorted(maps.Keys(names))
	}
	return out
}
