// Package translate is the command that brings requests in the words of other systems into gpuslice's: it rewrites manifests, and
// previews a namespace.
package translate

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies/translate"
)

const long = `With -f: print pods and workloads that request GPUs in the words of another system, in gpuslice's: resources and annotations of that
system become labels and nvidia.com/gpu. Everything else is printed as it is, without comments; unknown fields are kept. It
connects to no cluster, and reads no policy: gpuslice render shows whether a namespace gives such a slice. An object that cannot
be translated is left out, with the reason on standard error. -o diff prints what changes.

Without -f: preview how the workloads and pods of a namespace that request GPUs in such words are written for gpuslice. It changes
nothing, and takes the right to read pods and workloads. There are two ways to go on: translate the manifests, or have the
namespace's policy accept the words as they are, with "accept: [SYSTEM]". Pods that a workload controls are shown with it. Finished
Jobs and pods are left out.

These systems are read: %s.

Without -f, -o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "TranslationList", "items": [...]}, in which an item
has namespace, kind, name, systems, words, request, notes and problems. -o name prints the objects.`

const example = `  # a pod that was written for HAMi
  gpuslice translate -f pod.yaml

  # what changes in a directory of manifests
  gpuslice translate -f manifests/ -o diff

  # a chart
  helm template ./chart | gpuslice translate -f - | kubectl apply -n team-a -f -

  # what of a namespace was written for HAMi
  gpuslice translate --from hami -n team-a`

// options are the command's flags.
type options struct {
	filenames []string
	kube      kube.Flags
	from      string
	output    cli.Output
	units     map[string]string
	as        translate.Translation // with the units
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "translate [-f FILE|DIRECTORY|- | -n NAMESPACE] [flags]",
		Short:   "Print manifests for another system in gpuslice's words, or preview a namespace",
		Long:    fmt.Sprintf(long, strings.Join(known(), ", ")),
		Example: example,
		PreRunE: func(*cobra.Command, []string) error { return o.check() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.filenames) == 0 {
				return o.preview(cmd.Context(), s)
			}
			return o.run(s)
		},
	}
	flags := cmd.Flags()
	o.kube.Register(flags)
	o.kube.RegisterNamespace(flags, "to preview (default: the context's, else \"default\")")
	flags.StringVar(&o.from, "from", "", "`SYSTEM` whose words are looked for in the namespace (default: all)")
	flags.StringArrayVarP(&o.filenames, "filename", "f", nil,
		"`FILE`, directory (*.yaml, *.yml, *.json, recursively) or - for standard input; may be repeated")
	flags.StringToStringVar(&o.units, "memory-unit", nil,
		"`SYSTEM=UNIT` in which the system's device plugin counts memory, such as aliyun=1Mi (--memory-unit=MiB there) or volcano=1Gi "+
			"(--gpu-memory-factor=1024)")
	o.output.Register(cmd, cli.YAML, cli.Name, cli.JSONPath, diff)
	o.kube.CompleteNamespaces(cmd, s)
	return cmd
}

// diff is the format of what changes in files.
const diff = "diff"

func (o *options) check() error {
	files := len(o.filenames) > 0
	for system, unit := range o.units {
		if err := o.as.SetUnit(system, unit); err != nil {
			return fmt.Errorf("--memory-unit %w", err)
		}
	}
	switch {
	case o.from != "" && !slices.Contains(known(), o.from):
		return fmt.Errorf("--from %q: accepted: %s", o.from, strings.Join(known(), ", "))
	case files && (o.from != "" || o.kube.Named()):
		return errors.New("-f translates files and reads no cluster: leave out -f, or --from, --kubeconfig and --context")
	case files && !slices.Contains([]string{"text", cli.YAML, diff}, o.output.Format):
		return fmt.Errorf("-o %s is for the preview of a namespace; accepted with -f: yaml, diff", o.output.Format)
	case !files && o.output.Format == diff:
		return errors.New("-o diff is for files: name them with -f FILE, -f DIRECTORY or -f -")
	}
	return nil
}

func (o *options) run(s cli.Streams) error {
	var tally cli.Tally
	stream := cli.Objects{Out: s.Out}
	for _, d := range (&manifest.Reader{Stdin: s.In}).Documents(o.filenames, manifest.MaxManifest) {
		objects, failed := d.Objects()
		for _, object := range objects {
			t, err := of(object, o.as)
			if err != nil {
				failed = append(failed, manifest.Error{At: object.At, Err: err})
				continue
			}
			t.report(s.Err)
			tally.Denied = tally.Denied || t.after == nil
			if err := t.print(s, o.output.Format, &stream); err != nil {
				return err
			}
		}
		for _, e := range failed {
			fmt.Fprintln(s.Err, e)
			tally.Failed(e)
		}
	}
	return tally.Exit()
}

// report prints the translation of an object, for people.
func (t *translated) report(out io.Writer) {
	say := func(text string) { fmt.Fprintln(out, cli.OneLine(t.String()+": "+text)) } // names are whatever the file has
	for _, problem := range t.Problems {
		say("not translated: " + problem)
	}
	if t.Pod != nil {
		say(t.Request + ", from " + strings.Join(t.Words, ", "))
	}
	for _, note := range t.Notes {
		say(note)
	}
}

func (t *translated) print(s cli.Streams, format string, stream *cli.Objects) error {
	switch {
	case t.after == nil || format == diff && t.Pod == nil:
		return nil
	case format != diff:
		return stream.Print(t.after)
	}
	text, err := manifest.Diff(t.Object, t.after, "as it is translated")
	if err != nil {
		return err
	}
	return s.PrintDiff(text)
}
