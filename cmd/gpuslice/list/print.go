package list

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/policies/api"
)

// printer prints slices as the flags want them.
type printer struct {
	*options
	streams cli.Streams
	printed map[string][]slice // by pod, while watching
	widths  []int              // of the columns that were printed
}

// forTools reports whether programs read the answer: an empty list is one, too.
func (p *printer) forTools() bool {
	return p.output.Format != "text" && p.output.Format != cli.Wide
}

func (p *printer) print(found listed) error {
	return p.output.Print(p.streams.Out, cli.Answer{
		Document: cli.NewList("SliceList", found.slices, found.unread...),
		Names:    names(found.slices),
		Page: func() *cli.Page {
			page := &cli.Page{}
			page.Table("", p.pad(append([][]string{p.header()}, p.rows(found.slices)...)))
			return page
		},
	})
}

// pad keeps the columns of later rows below those that are printed already.
func (p *printer) pad(rows [][]string) [][]string {
	if p.widths == nil {
		p.widths = make([]int, len(rows[0])-1)
	}
	for _, row := range rows {
		for i := range p.widths {
			p.widths[i] = max(p.widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	for _, row := range rows {
		for i, width := range p.widths {
			row[i] = fmt.Sprintf("%-*s", width, cmp.Or(row[i], "-"))
		}
	}
	return rows
}

// report prints a gap in an answer.
func (p *printer) report(e cli.Error) { fmt.Fprintf(p.streams.Err, "%s: %s\n", e.Source, e.Message) }

// names are the pods of slices.
func names(all []slice) []string {
	return cli.PodNames(all, func(s slice) (string, string) { return s.Namespace, s.Pod })
}

func (p *printer) header() []string {
	header := []string{"POD", "CONTAINER", "REQUESTED", "SLICE", "PLANNED", "OBSERVED", "STATUS", "POOL", "NODE", "AGE"}
	if p.pods.All {
		header = append([]string{"NAMESPACE"}, header...)
	}
	if p.output.Format == cli.Wide {
		header = append(header, "RESOURCE", "LIMIT", "COMPUTE", "STRATEGY", "POLICY")
	}
	return header
}

func (p *printer) rows(all []slice) (rows [][]string) {
	for _, s := range all {
		row := []string{s.Pod, s.Container, requested(s.Requested), cli.Amount(s.Memory),
			string(api.Strongest(s.Planned)), string(api.Strongest(s.Observed)), s.Status, s.Pool, s.Node,
			duration.HumanDuration(p.streams.Now().Sub(s.Created))}
		if p.pods.All {
			row = append([]string{s.Namespace}, row...)
		}
		if p.output.Format == cli.Wide {
			row = append(row, fmt.Sprintf("%s=%d", s.Resource, s.Count), cli.Amount(s.Limit),
				cli.Percent(s.Compute), string(s.Strategy), s.Policy)
		}
		rows = append(rows, row)
	}
	return rows
}

// requested is a request in the words of the labels: "memory=8Gi,compute=25"; "": the policy gives a slice to who requests none.
func requested(r *api.ContainerRequest) string {
	if r == nil {
		return ""
	}
	var parts []string
	for _, part := range [][2]string{
		{"memory", cli.Amount(r.Size.Memory)}, {"memory-limit", cli.Amount(r.Size.MemoryLimit)}, {"fraction", fraction(r)},
		{"class", r.Size.Class}, {"compute", cli.Count(int64(r.Size.Compute))},
	} {
		if part[1] != "" {
			parts = append(parts, part[0]+"="+part[1])
		}
	}
	if len(parts) == 0 && r.Resource != "" {
		return r.Resource + "=" + cmp.Or(r.Quantity, strconv.FormatInt(r.GPUs, 10))
	}
	return strings.Join(parts, ",")
}

func fraction(r *api.ContainerRequest) string {
	if r.Size.Fraction.Zero() {
		return ""
	}
	return r.Size.Fraction.String()
}

// follow prints the present slices, and then each that is added, changes or goes.
func (p *printer) follow(ctx context.Context, found listed) error {
	p.printed = map[string][]slice{}
	for _, s := range found.slices {
		p.printed[s.Namespace+"/"+s.Pod] = append(p.printed[s.Namespace+"/"+s.Pod], s)
	}
	if err := p.printSome(found.slices); err != nil {
		return err
	}
	w, err := p.pods.Watch(ctx, found.version)
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if ctx.Err() != nil { // an interrupt ends the watch with an error event
			return nil
		}
		if err := p.event(event); err != nil {
			return err
		}
	}
	return nil
}

// event prints the change of a pod.
func (p *printer) event(event watch.Event) error {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("watch pods: %w", apierrors.FromObject(event.Object))
	}
	all, err := slicesOf(pod)
	if err != nil {
		p.report(unread(pod, err))
		return nil
	}
	key := pod.Namespace + "/" + pod.Name
	if event.Type == watch.Deleted {
		for i := range all {
			all[i].Status = gone(pod)
		}
	}
	if reflect.DeepEqual(all, p.printed[key]) {
		return nil
	}
	p.printed[key] = all
	return p.printSome(all)
}

// gone is the status of a pod that is no longer listed: it has ended, or was deleted.
func gone(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return string(pod.Status.Phase)
	}
	return "Deleted"
}

// printSome prints some slices of many that come: items one after the other, and the header of a table once.
func (p *printer) printSome(all []slice) error {
	if len(all) == 0 {
		return nil
	}
	if !p.forTools() {
		err := p.print(listed{slices: all})
		p.output.NoHeaders = true
		return err
	}
	var failed error
	for _, s := range all {
		if p.output.Format == cli.YAML {
			fmt.Fprintln(p.streams.Out, "---")
		}
		failed = errors.Join(failed, p.output.Print(p.streams.Out, cli.Answer{Document: s, Names: names([]slice{s})}))
	}
	return failed
}
