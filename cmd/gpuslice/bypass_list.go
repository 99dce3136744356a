package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

// bypassPrinted is an item of bypass -o json.
type bypassPrinted struct {
	Namespace string `json:"namespace"`
	Until     string `json:"until,omitempty"` // absent: nobody said, and gpuslice has not given it an end yet
	By        string `json:"by,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Overdue   bool   `json:"overdue"` // its time has passed: gpuslice does not run
}

// overdue leaves gpuslice time to end a bypass.
const overdue = time.Minute

func (b *bypasser) list(ctx context.Context) error {
	o := metav1.ListOptions{LabelSelector: api.LabelBypass}
	if b.flags.Namespace != "" {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", b.flags.Namespace).String()
	}
	found, err := b.client.CoreV1().Namespaces().List(ctx, o)
	if err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	if b.flags.output == "json" {
		return b.print(found.Items...)
	}
	if len(found.Items) == 0 {
		fmt.Fprintln(b.streams.out, "no namespace is bypassed")
		return nil
	}
	table := tabwriter.NewWriter(b.streams.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAMESPACE\tUNTIL\tBY\tREASON")
	for _, ns := range found.Items {
		p := printedBypass(ns)
		until := cmp.Or(p.Until, "not said")
		if p.Overdue {
			until += " (overdue: gpuslice does not run)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.Namespace, until, printable(cmp.Or(p.By, "-")), printable(cmp.Or(p.Reason, "-")))
	}
	return table.Flush()
}

// print prints namespaces as JSON.
func (b *bypasser) print(namespaces ...corev1.Namespace) error {
	list := listing[bypassPrinted]{APIVersion: outputVersion, Kind: "BypassList", Items: []bypassPrinted{}, Errors: []errorPrinted{}}
	for _, ns := range namespaces {
		list.Items = append(list.Items, printedBypass(ns))
	}
	return printJSON(b.streams.out, list)
}

func printedBypass(ns corev1.Namespace) bypassPrinted {
	found, _ := policies.BypassOf(ns.Labels, ns.Annotations)
	p := bypassPrinted{Namespace: ns.Name, By: found.By, Reason: found.Reason}
	if !found.Until.IsZero() {
		p.Until = found.Until.UTC().Format(time.RFC3339)
		p.Overdue = time.Since(found.Until) > overdue
	}
	return p
}

// printable keeps what somebody wrote on a namespace from moving the reader's cursor.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
