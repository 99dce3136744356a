// Package translate has the commands that bring requests in the words of other systems into gpuslice's: translate for manifests,
// and migrate, which previews a namespace.
package translate

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
)

const long = `Print pods and workloads that request GPUs in the words of another system, in gpuslice's: resources and annotations of that
system become labels and nvidia.com/gpu. Everything else is printed as it is, without comments; unknown fields are kept. It
connects to no cluster, and reads no policy: gpuslice render shows whether a namespace gives such a slice.

These systems are read: %s.

An object that cannot be translated is left out, with the reason on standard error.`

const example = `  # a pod that was written for HAMi
  gpuslice translate -f pod.yaml

  # what changes in a directory of manifests
  gpuslice translate -f manifests/ -o diff

  # a chart
  helm template ./chart | gpuslice translate -f - | kubectl apply -n team-a -f -`

// options are the command's flags.
type options struct {
	filenames []string
	output    string
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "translate -f FILE|DIRECTORY|- [flags]",
		Short:   "Print manifests for another system in gpuslice's words",
		Long:    fmt.Sprintf(long, strings.Join(known(), ", ")),
		Example: example,
		PreRunE: func(*cobra.Command, []string) error {
			if len(o.filenames) == 0 {
				return errors.New("nothing to read: name it with -f FILE, -f DIRECTORY or -f -")
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error { return o.run(s) },
	}
	cmd.Flags().StringArrayVarP(&o.filenames, "filename", "f", nil,
		"`FILE`, directory (*.yaml, *.yml, *.json, recursively) or - for standard input; may be repeated")
	cli.OutputFlag(cmd, &o.output, []string{"yaml", "diff"})
	return cmd
}

func (o *options) run(s cli.Streams) error {
	var tally cli.Tally
	stream := cli.Objects{Out: s.Out}
	for _, d := range (&manifest.Reader{Stdin: s.In}).Documents(o.filenames, manifest.MaxManifest) {
		objects, failed := d.Objects()
		for _, object := range objects {
			t, err := of(object)
			if err != nil {
				failed = append(failed, manifest.Error{At: object.At, Err: err})
				continue
			}
			t.report(s.Err)
			tally.Denied = tally.Denied || t.after == nil
			if err := t.print(s, o.output, &stream); err != nil {
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
	case t.after == nil || format == "diff" && t.Pod == nil:
		return nil
	case format != "diff":
		return stream.Print(t.after)
	}
	text, err := manifest.Diff(t.Object, t.after, "as it is translated")
	if err != nil {
		return err
	}
	return s.PrintDiff(text)
}
