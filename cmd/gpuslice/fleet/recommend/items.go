package recommend

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/history"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/sizing"
	"github.com/gpuslice/gpuslice/policies/api"
)

// item is the recommendation for the container of a workload: an item of -o json.
type item struct {
	Cluster   string         `json:"cluster,omitempty"` // if the server or file has a label of one
	Namespace string         `json:"namespace,omitempty"`
	Workload  string         `json:"workload"`
	Kind      string         `json:"kind,omitempty"` // of the owner, if it is known from the pods' names
	Container string         `json:"container,omitempty"`
	Pods      int            `json:"pods"`
	Hours     float64        `json:"hours"` // observed
	Peak      api.MiB        `json:"peak,omitzero"`
	Slice     api.MiB        `json:"slice,omitzero"`  // now; absent: none, or unknown
	Device    api.MiB        `json:"device,omitzero"` // memory of the GPU
	Verdict   sizing.Verdict `json:"verdict"`
	Marks     []sizing.Mark  `json:"marks"`
	Estimate  api.MiB        `json:"estimate,omitzero"` // before it is rounded
	Size      api.MiB        `json:"size,omitzero"`     // the recommended request; absent: none
	Pool      string         `json:"pool,omitempty"`    // that gives the size with the least rounding
	Coverage  float64        `json:"coverage,omitempty"`
	HoldsFor  float64        `json:"holdsForHours,omitempty"`
	MoreHours float64        `json:"moreHours,omitempty"` // to wait for
	Basis     *sizing.Basis  `json:"basis,omitempty"`
	Events    *sizing.Events `json:"events,omitempty"`
	EngineUse float64        `json:"engineCacheUse,omitempty"` // highest, 0 to 1
	Saves     *int64         `json:"savesBytes,omitempty"`     // of all pods; negative: it takes more; absent: unknown
	SavesCost *float64       `json:"savesPerMonth,omitempty"`  // absent: unknown, or without --price
	Advice    string         `json:"advice,omitempty"`
	// Incomplete is what the server said of incomplete answers.
	Incomplete []string `json:"incomplete,omitempty"`

	owner  string // name of the object that makes the pods
	shared bool   // the samples are of a GPU that several containers shared
}

const hoursOfMonth = 730

// saves orders items: one whose saving is unknown like one that saves nothing.
func (i *item) saves() int64 {
	if i.Saves == nil {
		return 0
	}
	return *i.Saves
}

func (o *historyOptions) itemOf(r *history.Record, e sizing.Estimate, offers offers) item {
	i := item{owner: r.Owner.Name, Cluster: r.Key.Cluster, Namespace: r.Key.Namespace, Workload: r.Key.Workload,
		Kind: r.Owner.Kind, Container: r.Key.Container, Pods: r.Pods,
		Hours: math.Round(e.Hours*10) / 10, Peak: api.MiB(math.Ceil(e.Peak)), Slice: r.Slice, Device: r.Device, Verdict: e.Verdict,
		Marks: cli.NonNil(e.Marks), MoreHours: math.Ceil(e.MoreHours*10) / 10, EngineUse: r.EngineUse}
	if r.Events != (sizing.Events{}) {
		i.Events = &r.Events
	}
	if i.shared = r.Shared; i.shared {
		i.Peak, i.Marks = 0, []sizing.Mark{} // those of the GPU
		i.Verdict, i.MoreHours, i.Advice =
			sizing.Unknown, 0, "several containers shared its GPU, which DCGM measures as a whole: agents of gpuslice measure each container"
		return i
	}
	if i.Advice = adviceOf(e.Verdict, r, o.coverage); e.Size == 0 {
		return i
	}
	i.Estimate, i.Coverage, i.HoldsFor, i.Basis = api.MiB(e.Size), o.coverage, e.HoldsFor, &e.Basis
	if i.Size, i.Pool = offers.fit(i.Estimate, i.Device); i.Size == 0 {
		i.Advice = "no pool has a slice of that size: request a whole GPU"
		return i
	}
	i.compare()
	if o.price > 0 && i.Saves != nil && (*i.Saves == 0 || i.Device > 0) {
		gpus := float64(*i.Saves) / float64(max(i.Device, 1).Bytes())
		i.SavesCost = new(math.Round(gpus*o.price*hoursOfMonth*100) / 100)
	}
	return i
}

// compare compares the size, as it is rounded, with the workload's own.
func (i *item) compare() {
	has := cmp.Or(i.Slice, i.Device)
	if has == 0 {
		return
	}
	if i.Verdict == sizing.OverRequested && i.Size >= has {
		i.Verdict = sizing.Right // rounding costs all of it
	}
	if i.Saves = new(int64); i.Verdict != sizing.Right {
		*i.Saves = (has - i.Size).Bytes() * int64(max(i.Pods, 1))
	}
}

// adviceOf is the advice on a verdict without a number.
func adviceOf(v sizing.Verdict, r *history.Record, coverage float64) string {
	switch v {
	case sizing.TakesWhatIsGiven:
		if r.EngineUse > 0 {
			return fmt.Sprintf("its peak is its slice; of its own cache it used %.0f%% at most: see gpuslice estimate", 100*r.EngineUse)
		}
		return "its peak may be what it was given: see gpuslice estimate, or limit the engine's share of memory"
	case sizing.Unknown:
		return fmt.Sprintf("%g%% needs %d workloads with enough history", coverage, sizing.Needed(coverage/100))
	case sizing.Idle:
		return "it never used more than the driver itself"
	}
	return ""
}

// pageOf is the table.
func pageOf(items []item, priced bool) *cli.Page {
	header := []string{"NAMESPACE", "WORKLOAD", "CONTAINER", "PODS", "HISTORY", "PEAK", "NOW", "SIZE", "SAVES"}
	if priced {
		header = append(header, "PER-MONTH")
	}
	several := len(clustersOf(items)) > 1
	if several {
		header = slices.Insert(header, 0, "CLUSTER")
	}
	rows := [][]string{append(header, "VERDICT", "MARKS")}
	for _, i := range items {
		peak := cli.Amount(i.Peak)
		if i.shared {
			peak = "unknown"
		}
		row := []string{i.Namespace, i.Workload, i.Container, cli.Count(int64(i.Pods)),
			hoursText(i.Hours), peak, now(i), cli.Amount(i.Size), signed(i.Saves)}
		if priced {
			row = append(row, i.cost())
		}
		if several {
			row = slices.Insert(row, 0, i.Cluster)
		}
		verdict := string(i.Verdict)
		if i.MoreHours > 0 {
			verdict += fmt.Sprintf(" (%s more)", hoursText(i.MoreHours))
		}
		rows = append(rows, append(row, verdict, cli.Join(i.Marks)))
	}
	page := &cli.Page{}
	page.Table("", rows)
	return page
}

// cost is the monthly saving of the item, which is unknown for a GPU of unknown memory.
func (i *item) cost() string {
	switch {
	case i.SavesCost != nil:
		return strconv.FormatFloat(*i.SavesCost, 'f', 2, 64)
	case i.Size > 0:
		return "unknown"
	}
	return ""
}

func now(i item) string {
	if i.Slice == 0 && i.Device > 0 {
		return "a GPU of " + i.Device.Human()
	}
	return cli.Amount(i.Slice)
}

// signed is an amount that may be negative. nil: it is not known.
func signed(bytes *int64) string {
	if bytes == nil {
		return ""
	}
	m := api.MiB(*bytes >> 20)
	if m < 0 {
		return "-" + (-m).Human()
	}
	return cli.Amount(m)
}

func hoursText(hours float64) string {
	if hours >= 48 {
		return strconv.FormatFloat(hours/24, 'f', 0, 64) + "d"
	}
	return strconv.FormatFloat(hours, 'f', -1, 64) + "h"
}

// printNotes prints the bases of sizes, and advice, each once with the number of workloads.
func printNotes(out io.Writer, items []item) {
	var notes []string
	counts := map[string]int{}
	add := func(note string) {
		if counts[note]++; counts[note] == 1 {
			notes = append(notes, note)
		}
	}
	for _, i := range items {
		if i.Basis != nil {
			add(basisText(i))
		}
		if i.Advice != "" {
			add(string(i.Verdict) + ": " + i.Advice)
		}
	}
	const most = 20
	for _, note := range notes[:min(len(notes), most)] {
		fmt.Fprintf(out, "%s (workloads: %d)\n", note, counts[note])
	}
	if more := len(notes) - most; more > 0 {
		fmt.Fprintln(out, cli.AndMore(more))
	}
}

func basisText(i item) string {
	holds := fmt.Sprintf("sizes at %g%% for the next %s", i.Coverage, hoursText(i.HoldsFor))
	switch b := i.Basis; {
	case b.Table:
		return holds + ", from a built-in table of one service: there are too few workloads with enough history"
	case b.Group != "":
		return fmt.Sprintf("%s, from %d workloads of namespace %s", holds, b.Workloads, b.Group)
	default:
		return fmt.Sprintf("%s, from %d workloads", holds, b.Workloads)
	}
}

// printCSV prints rows in which a cell is empty if its value is not known.
func printCSV(out io.Writer, items []item) error {
	rows := [][]string{{"namespace", "workload", "kind", "container", "pods",
		"hours", "peak_mib", "slice_mib", "size_mib", "saves_mib", "saves_per_month", "verdict", "marks", "cluster"}}
	mib := func(m api.MiB) string { return cli.Count(int64(m)) }
	for _, i := range items {
		saves, cost := "", ""
		if i.Saves != nil {
			saves = strconv.FormatInt(*i.Saves>>20, 10)
		}
		if i.SavesCost != nil {
			cost = strconv.FormatFloat(*i.SavesCost, 'f', -1, 64)
		}
		rows = append(rows,
			[]string{i.Namespace, i.Workload, i.Kind, i.Container, strconv.Itoa(i.Pods), strconv.FormatFloat(i.Hours, 'f', -1, 64),
				mib(i.Peak), mib(i.Slice), mib(i.Size), saves, cost, string(i.Verdict), cli.Join(i.Marks), i.Cluster})
	}
	return cli.PrintCSV(out, rows)
}

// owners are the objects whose pod template a patch labels.
var owners = map[string]string{"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "CronJob": "batch/v1"}

// unpatchable is why there is no patch for an owner of a kind.
func unpatchable(kind, name string) string {
	switch kind {
	case "":
		return "its owner is unknown from the names of its pods: kube-state-metrics would show it"
	case "Pod":
		return "a pod's size does not change: create it again"
	case "Job":
		return "the template of a Job does not change: create it again"
	}
	return fmt.Sprintf("%s %s makes its pods: only its own documentation says where their labels stand", kind, name)
}

// printPatches prints, for each owner whose slice is to change, an object that kubectl apply --server-side takes.
func printPatches(s cli.Streams, items []item) error {
	changes := map[[3]string]*change{}
	var order [][3]string
	for _, i := range items {
		key := [3]string{i.Kind, i.Namespace, cmp.Or(i.owner, i.Workload)}
		if changes[key] == nil {
			changes[key], order = &change{}, append(order, key)
		}
		changes[key].add(i)
	}
	for _, key := range order {
		c, name := changes[key], key[1]+"/"+key[2]
		switch {
		case !c.changes:
			continue
		case c.unsized > 0:
			fmt.Fprintf(s.Err, "%s: left as it is: %d of its containers have no size\n", name, c.unsized)
			continue
		case key[1] == "":
			fmt.Fprintf(s.Err, "%s: no patch: its namespace is unknown\n", key[2])
			continue
		case owners[key[0]] == "":
			fmt.Fprintf(s.Err, "%s: no patch: %s. The label is %s: %s\n", name, unpatchable(key[0], key[2]), api.LabelMemory, c.largest)
			continue
		}
		text, err := yaml.Marshal(patchOf(key, c.largest))
		if err != nil {
			return fmt.Errorf("%w: print the answer: %w", cli.ErrInternal, err)
		}
		if _, err := fmt.Fprintf(s.Out, "---\n%s", text); err != nil {
			return fmt.Errorf("print the answer: %w", err)
		}
	}
	return nil
}

// change is the change of the label of an owner's pods, which covers all their containers.
type change struct {
	largest api.MiB // that one of the containers needs
	unsized int
	changes bool // one of the containers is to have another size
}

func (c *change) add(i item) {
	need := i.Size
	switch {
	case i.Size == 0:
		c.unsized++
	case i.Verdict == sizing.Right:
		need = max(i.Size, i.Slice)
	default:
		c.changes = true
	}
	c.largest = max(c.largest, need)
}

func patchOf(key [3]string, size api.MiB) map[string]any {
	type object = map[string]any
	template := object{"template": object{"metadata": object{"labels": object{api.LabelMemory: size.String()}}}}
	if key[0] == "CronJob" {
		template = object{"jobTemplate": object{"spec": template}}
	}
	return object{"apiVersion": owners[key[0]], "kind": key[0], "metadata": object{"namespace": key[1], "name": key[2]}, "spec": template}
}
