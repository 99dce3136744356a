package bypass

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

// item is an item of -o json.
type item struct {
	Namespace string `json:"namespace"`
	Until     string `json:"until,omitempty"` // absent: none is set, and gpuslice has not set one yet
	By        string `json:"by,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Overdue   bool   `json:"overdue"` // its time has passed, and it is still there: gpuslice is not running
}

// overdue leaves gpuslice time to end a bypass.
const overdue = time.Minute

func (b *bypasser) list(ctx context.Context) error {
	o := metav1.ListOptions{LabelSelector: api.LabelBypass + "=true"}
	if b.options.Namespace != "" {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", b.options.Namespace).String()
	}
	found, err := b.client.CoreV1().Namespaces().List(ctx, o)
	if err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	if cli.IsDocument(b.options.output) {
		return b.print(found.Items...)
	}
	if len(found.Items) == 0 {
		fmt.Fprintln(b.streams.Out, "no namespace is bypassed")
		return nil
	}
	rows := [][]string{{"NAMESPACE", "UNTIL", "BY", "REASON"}}
	for _, ns := range found.Items {
		p := itemOf(ns)
		until := cmp.Or(p.Until, "not set")
		if p.Overdue {
			until += " (overdue: gpuslice is not running)"
		}
		rows = append(rows, []string{p.Namespace, until, p.By, p.Reason})
	}
	var page cli.Page
	page.Table("", rows)
	return page.Print(b.streams.Out)
}

// print prints namespaces as JSON.
func (b *bypasser) print(namespaces ...corev1.Namespace) error {
	items := []item{}
	for _, ns := range namespaces {
		items = append(items, itemOf(ns))
	}
	return cli.PrintDocument(b.streams.Out, b.options.output, cli.NewList("BypassList", items))
}

func itemOf(ns corev1.Namespace) item {
	found, _ := policies.BypassOf(ns.Labels, ns.Annotations)
	p := item{Namespace: ns.Name, By: found.By, Reason: found.Reason}
	if !found.Until.IsZero() {
		p.Until = found.Until.UTC().Format(time.RFC3339)
		p.Overdue = time.Since(found.Until) > overdue
	}
	return p
}
