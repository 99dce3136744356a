package translate

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
)

// preview shows what of a namespace requests GPUs in the words of another system. It changes nothing.
func (o *options) preview(ctx context.Context, s cli.Streams) error {
	connection, err := o.kube.Connect(s)
	if err != nil {
		return err
	}
	objects, err := installed.Workloads(ctx, connection.Client, connection.Namespace)
	if err != nil {
		return err
	}
	pods, err := installed.LivingPods(ctx, connection.Client, []string{connection.Namespace})
	if err != nil {
		return err
	}
	for i := range pods {
		if metav1.GetControllerOf(&pods[i]) != nil {
			continue
		}
		pod, err := manifest.FromCluster("v1", "Pod", &pods[i])
		if err != nil {
			return err
		}
		objects = append(objects, pod)
	}
	var tally cli.Tally
	items := []migrated{}
	for _, object := range objects {
		t, err := of(object, o.as)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", object, err)
		case !t.Has(o.from):
			continue
		}
		tally.Denied = tally.Denied || len(t.Problems) > 0
		items = append(items,
			migrated{t.Namespace, t.Kind, t.Name, t.Systems, cli.NonNil(t.Words), t.Request, cli.NonNil(t.Notes), cli.NonNil(t.Problems)})
	}
	if err := o.printPreview(s, connection.Namespace, items); err != nil {
		return err
	}
	return tally.Exit()
}

// migrated is an item of -o json.
type migrated struct {
	Namespace string   `json:"namespace"`
	Kind      string   `json:"kind"`
	Name      string   `json:"name"`
	Systems   []string `json:"systems"`
	Words     []string `json:"words"`
	Request   string   `json:"request"` // "": see problems
	Notes     []string `json:"notes"`
	Problems  []string `json:"problems"`
}

func (o *options) printPreview(s cli.Streams, namespace string, items []migrated) error {
	return o.output.Print(s.Out, cli.Answer{
		Document: cli.NewList("TranslationList", items), Page: func() *cli.Page { return pageOf(namespace, items) },
		Names: cli.Names(items, func(i migrated) string { return strings.ToLower(i.Kind) + "/" + i.Name }),
	})
}

func pageOf(namespace string, items []migrated) *cli.Page {
	page := &cli.Page{}
	if len(items) == 0 {
		page.Linef("Nothing in namespace %s requests a GPU in the words of another system.", namespace)
		return page
	}
	rows := [][]string{{"OBJECT", "SYSTEM", "WORDS", "BECOMES"}}
	for _, i := range items {
		becomes := i.Request
		if len(i.Problems) > 0 {
			becomes = "not translated: " + strings.Join(i.Problems, "; ")
		}
		rows = append(rows, []string{i.Kind + "/" + i.Name, strings.Join(i.Systems, ", "),
			strings.Join(i.Words, ", "), strings.Join(append([]string{becomes}, i.Notes...), "; ")})
	}
	page.Table("", rows)
	return page
}
