package translate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
)

const migrateLong = `Preview how the workloads and pods of a namespace that request GPUs in the words of another system are written for gpuslice.
It changes nothing, and takes the right to read pods and workloads. There are two ways to go on: translate the manifests with
gpuslice translate, or have the namespace's policy accept the words as they are, with "accept: [SYSTEM]".

Pods that a workload controls are shown with it. Finished Jobs and pods are left out.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "MigrationList", "items": [...]}, in which an item has
namespace, kind, name, systems, words, request, notes and problems.`

const migrateExample = `  # what of a namespace was written for HAMi
  gpuslice migrate --from hami -n team-a

  # for any system that gpuslice knows
  gpuslice migrate -n team-a -o json`

// migration are the command's flags.
type migration struct {
	kube   kube.Flags
	from   string
	output cli.Output
}

// NewMigrate returns the command.
func NewMigrate(s cli.Streams) *cobra.Command {
	var m migration
	cmd := &cobra.Command{
		Use:     "migrate [--from SYSTEM] [-n NAMESPACE] [flags]",
		Short:   "Preview how a namespace's requests for another system are written for gpuslice",
		Long:    migrateLong,
		Example: migrateExample,
		PreRunE: func(*cobra.Command, []string) error { return m.check() },
		RunE:    func(cmd *cobra.Command, _ []string) error { return m.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	m.kube.Register(flags)
	m.kube.RegisterNamespace(flags, "to preview (default: the context's, else \"default\")")
	flags.StringVar(&m.from, "from", "", "`SYSTEM` whose words are looked for (default: all): "+strings.Join(known(), ", "))
	m.output.Register(cmd, cli.YAML, cli.Name, cli.JSONPath)
	m.kube.CompleteNamespaces(cmd, s)
	return cmd
}

func (m *migration) check() error {
	if m.from != "" && !slices.Contains(known(), m.from) {
		return fmt.Errorf("--from %q: accepted: %s", m.from, strings.Join(known(), ", "))
	}
	return nil
}

func (m *migration) run(ctx context.Context, s cli.Streams) error {
	connection, err := m.kube.Connect(s)
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
		o, err := manifest.FromCluster("v1", "Pod", &pods[i])
		if err != nil {
			return err
		}
		objects = append(objects, o)
	}
	var tally cli.Tally
	items := []migrated{}
	for _, o := range objects {
		t, err := of(o)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", o, err)
		case !t.Has(m.from):
			continue
		}
		tally.Denied = tally.Denied || len(t.Problems) > 0
		items = append(items,
			migrated{t.Namespace, t.Kind, t.Name, t.Systems, cli.NonNil(t.Words), t.Request, cli.NonNil(t.Notes), cli.NonNil(t.Problems)})
	}
	if err := m.print(s, connection.Namespace, items); err != nil {
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

func (m *migration) print(s cli.Streams, namespace string, items []migrated) error {
	return m.output.Print(s.Out, cli.Answer{
		Document: cli.NewList("MigrationList", items), Page: func() *cli.Page { return pageOf(namespace, items) },
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
