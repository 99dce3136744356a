// Package preview finds the decisions on objects: by the webhook's own core, on files or on the objects of a cluster,
// or by dry-runs that the webhooks of a cluster answer.
package preview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/clusters"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies"
)

// Results are the results of all objects of -f.
type Results struct {
	Cluster *clusters.Cluster
	Items   []Result
	Errors  []manifest.Error

	tally cli.Tally
}

// Run loads the cluster and evaluates every object of -f, in order. An unreadable object does not stop the others: it
// is printed on standard error, and so are the lines that report returns of each result.
func (f *Flags) Run(ctx context.Context, s cli.Streams, report func(Result) []string) (*Results, error) {
	r := &manifest.Reader{Stdin: s.In}
	e, err := f.engine(ctx, r, s)
	if err != nil {
		return nil, err
	}
	all := &Results{Cluster: e.Cluster}
	documents := r.Documents(f.Filenames, manifest.MaxManifest)
	for _, d := range documents { // namespaces, claims and LimitRanges are beside the pods that name them, or after them
		objects, _ := d.Objects()
		for _, o := range objects {
			e.Cluster.AddNamespace(o)
			if err := errors.Join(e.Cluster.AddClaim(o, e.namespace), e.Cluster.AddLimitRange(o, e.namespace)); err != nil {
				all.fail(manifest.Error{At: o.At, Err: err})
				fmt.Fprintln(s.Err, err)
			}
		}
	}
	for _, d := range documents {
		objects, unread := d.Objects()
		for _, failed := range unread {
			all.fail(failed)
			fmt.Fprintln(s.Err, failed)
		}
		for _, o := range objects {
			results, err := e.Evaluate(ctx, o)
			if err != nil {
				all.fail(manifest.Error{At: o.At, Err: err})
				fmt.Fprintf(s.Err, "%s: %v\n", o, err)
				continue
			}
			all.Items = append(all.Items, results...)
			for _, result := range results {
				all.tally.Denied = all.tally.Denied || result.Decision.Outcome == policies.Denied
				for _, line := range report(result) {
					fmt.Fprintln(s.Err, line)
				}
			}
		}
	}
	if line := all.notJudged(); line != "" {
		fmt.Fprintln(s.Err, line)
	}
	return all, nil
}

// maxNamed bounds the objects that one line names.
const maxNamed = 10

// notJudged is a line about the objects whose pods could not be found; "": there is none.
func (r *Results) notJudged() string {
	var names []string
	for _, item := range r.Items {
		if slices.Contains([]string{whyNoTemplate, whyOtherShape}, item.Decision.UnchangedReason) {
			names = append(names, item.String())
		}
	}
	if len(names) == 0 {
		return ""
	}
	all := strings.Join(names[:min(len(names), maxNamed)], "; ")
	if len(names) > maxNamed {
		all += fmt.Sprintf("; and %d more", len(names)-maxNamed)
	}
	return fmt.Sprintf("objects whose pods a controller creates, from no pod template in them, not judged: %d: %s; try the pods that it creates",
		len(names), all)
}

func (r *Results) fail(e manifest.Error) {
	r.Errors = append(r.Errors, e)
	r.tally.Failed(e)
}

// Exit is the exit code of all results together.
func (r *Results) Exit() error { return r.tally.Exit() }
