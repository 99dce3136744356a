package recommend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/history"
	"github.com/gpuslice/gpuslice/policies/api"
)

// Formats of -o beside those of package cli.
const (
	patchFormat = "patch" // objects that kubectl applies
	csvFormat   = "csv"   // for spreadsheets
)

// historyOptions are the flags of recommendations from observations.
type historyOptions struct {
	kube       kube.Flags
	from       []string
	prometheus history.Server
	since      time.Duration
	period     time.Duration
	coverage   float64
	price      float64
	card       string
	workloads  []string

	systemNamespace string
	device          api.MiB // of card
}

func (o *historyOptions) register(flags *pflag.FlagSet) {
	o.since, o.period, o.coverage = 14*day, 7*day, 95
	o.kube.Register(flags)
	o.kube.RegisterNamespace(flags, "of the workloads that are printed (default: all)")
	flags.StringArrayVar(&o.from, "from", nil, "`FILE` with samples instead of Prometheus: the JSON of range queries, or CSV; .gz; -: standard input; may be repeated; or record: what gpuslice's leader recorded")
	cli.SystemNamespaceFlag(flags, &o.systemNamespace)
	o.prometheus.Register(flags)
	flags.Var((*days)(&o.since), "since", "`TIME` for which Prometheus is read, such as 12h or 14d")
	flags.Var((*days)(&o.period), "period", "`TIME` for which the size is to hold, such as 24h or 7d")
	flags.Float64Var(&o.coverage, "coverage", 95, "`PERCENT` of workloads that stay within their size for the period, 50 to 99.9")
	flags.Float64Var(&o.price, "price", 0, "`PRICE` of a GPU for an hour, for what a change saves in a month of 730 hours")
	flags.StringVar(&o.card, "device-memory", "", "`SIZE` of a GPU's memory, such as 80Gi, if neither samples nor pools have it")
}

// check checks the flags together.
func (o *historyOptions) check() (err error) {
	if o.card != "" {
		if o.device, err = parseSize(o.card); err != nil {
			return fmt.Errorf("--device-memory: %w", err)
		}
	}
	switch {
	case !(o.coverage >= 50 && o.coverage <= 99.9):
		return fmt.Errorf("--coverage %g: accepted: 50 to 99.9", o.coverage)
	case !(o.price >= 0 && o.price < 1e6):
		return fmt.Errorf("--price %g: accepted: the price of a GPU for an hour, such as 2.40", o.price)
	case len(o.from) > 1 && slices.Contains(o.from, fromRecord):
		return errors.New("--from record: name nothing beside it, and a file of that name as ./record")
	case len(o.from) > 0 && o.prometheus.Address != "":
		return errors.New("--from and --prometheus: name one of them")
	}
	return o.prometheus.Check()
}

func parseSize(text string) (m api.MiB, err error) {
	if err = m.UnmarshalText([]byte(text)); err == nil && m <= 0 {
		err = fmt.Errorf("%q: accepted: an amount of memory such as 80Gi", text)
	}
	return m, err
}

// run prints the recommendations.
func (o *historyOptions) run(ctx context.Context, s cli.Streams, output *cli.Output) error {
	records, offers, err := o.read(ctx, s)
	if err != nil {
		return err
	}
	all := records.All()
	if len(all) == 0 {
		where := ""
		if slices.Contains(o.from, fromRecord) {
			where = "; gpuslice's leader records what agents report: without agents, read a Prometheus that scrapes DCGM exporter, with --prometheus"
		}
		return fmt.Errorf("no samples of GPU memory by pod were found%s%s", leftOut(records), where)
	}
	for _, text := range []string{incomplete(records), leftOut(records), offers.problem} {
		if text != "" {
			fmt.Fprintln(s.Err, strings.TrimPrefix(text, ": "))
		}
	}
	items := o.recommend(all, offers)
	for i := range items {
		items[i].Incomplete = records.Incomplete
	}
	if len(items) == 0 {
		return fmt.Errorf("none of the %d workloads with samples is one of those requested", len(all))
	}
	if clusters := clustersOf(items); output.Format == patchFormat && len(clusters) > 1 {
		return history.SeveralClustersError(clusters)
	}
	if output.Format == patchFormat {
		return printPatches(s, items)
	}
	if output.Format == csvFormat {
		return printCSV(s.Out, items)
	}
	if err := output.Print(s.Out, cli.Answer{Document: cli.NewList("SizeRecommendationList", items),
		Page: func() *cli.Page { return pageOf(items, o.price > 0) }}); err != nil {
		return err
	}
	if !cli.IsDocument(output.Format) {
		printNotes(s.Err, items)
	}
	return nil
}

// incomplete is the server's warnings about incomplete answers; "": there are none.
func incomplete(r *history.Records) string {
	if len(r.Incomplete) == 0 {
		return ""
	}
	return "the server's answers are incomplete, so peaks and sizes may be too small: " + strings.Join(r.Incomplete, "; ")
}

// clustersOf are the clusters of items.
func clustersOf(items []item) (names []string) {
	for i := range items {
		if name := cmp.Or(items[i].Cluster, "(no label)"); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// leftOut names unusable input; "": none.
func leftOut(r *history.Records) string {
	var texts []string
	if r.Exporters > 0 {
		texts = append(texts, fmt.Sprintf("GPUs that no pod had, which DCGM exporter reports under its own pod (series: %d)", r.Exporters))
	}
	if r.Unnamed > 0 {
		texts = append(texts, fmt.Sprintf("%d series that name no pod", r.Unnamed))
	}
	if len(r.LeftOut) > 0 {
		var of []string
		for _, namespace := range slices.SortedFunc(maps.Keys(r.LeftOut), func(a, b string) int {
			return cmp.Or(cmp.Compare(r.LeftOut[b], r.LeftOut[a]), cmp.Compare(a, b))
		}) {
			of = append(of, fmt.Sprintf("%d of namespace %q", r.LeftOut[namespace], namespace))
		}
		texts = append(texts,
			fmt.Sprintf("series with longer names than objects have, or too many beside those of other namespaces (counted in each answer: %s)",
				cli.First(5, of)))
	}
	if r.Dropped > 0 {
		texts = append(texts, fmt.Sprintf("samples without a valid amount of memory, or later than this clock (%d)", r.Dropped))
	}
	if texts == nil {
		return ""
	}
	return ": left out are " + strings.Join(texts, " and ")
}

// read reads the samples, and the offers of the cluster's pools if there is one.
func (o *historyOptions) read(ctx context.Context, s cli.Streams) (*history.Records, offers, error) {
	if slices.Contains(o.from, fromRecord) {
		connection, err := o.kube.Connect(s)
		if err != nil {
			return nil, offers{}, err
		}
		return o.readRecord(ctx, s, connection.Client)
	}
	if len(o.from) > 0 {
		records, err := o.readFiles(ctx, s)
		return records, offers{}, err
	}
	server, cluster, err := o.prometheus.Connect(ctx, s, &o.kube)
	if errors.Is(err, history.ErrNoService) {
		records, offers, problem := o.readRecord(ctx, s, cluster)
		if problem != nil {
			return nil, offers, fmt.Errorf("%w, or read files with --from; %w", err, problem)
		}
		fmt.Fprintln(s.Err, "no service of Prometheus found: from what gpuslice's leader recorded")
		return records, offers, nil
	}
	if errors.Is(err, kube.ErrNoCluster) {
		err = fmt.Errorf("%w, or files with --from", err)
	}
	if err != nil {
		return nil, offers{}, err
	}
	until := s.Now().Truncate(time.Minute)
	records, err := server.Read(ctx, o.systemNamespace, until.Add(-o.since), until, progress(s))
	if err != nil || cluster == nil {
		return records, offers{}, err
	}
	return records, readOffers(ctx, cluster), nil
}

// fromRecord is the name of what gpuslice's leader recorded, in --from.
const fromRecord = "record"

// readRecord reads what gpuslice's leader recorded.
func (o *historyOptions) readRecord(ctx context.Context, s cli.Streams, cluster kubernetes.Interface) (*history.Records, offers, error) {
	recorded, err := history.ReadRecord(ctx, cluster, o.systemNamespace, s.Now().Add(-o.since), s.Now())
	if err != nil {
		return nil, offers{}, fmt.Errorf("the record of gpuslice's leader: %w", err)
	}
	for _, problem := range recorded.Unread {
		fmt.Fprintln(s.Err, "left out of the record:", problem)
	}
	if len(recorded.Workloads) == 0 {
		return nil, offers{}, fmt.Errorf("the record of gpuslice's leader in namespace %s has no workload: agents on the GPU nodes report use, and the leader writes once an hour", o.systemNamespace)
	}
	if recorded.Unrecorded > 0 {
		fmt.Fprintf(s.Err, "left out of the record: pods with several slices (%d), since agents report one sum for each pod\n",
			recorded.Unrecorded)
	}
	if recorded.LeftOut > 0 {
		fmt.Fprintf(s.Err, "left out of the record: workloads beyond those for which a day has room (%d)\n", recorded.LeftOut)
	}
	return history.Recorded(recorded), readOffers(ctx, cluster), nil
}

func (o *historyOptions) readFiles(ctx context.Context, s cli.Streams) (*history.Records, error) {
	records := history.NewRecords()
	records.System, records.Cluster = o.systemNamespace, o.prometheus.Cluster()
	// Times of another epoch than Unix's begin near zero, so that this drops none of them.
	records.Until = float64(s.Now().Add(time.Hour).Unix())
	for _, path := range o.from {
		if err := records.ReadFile(ctx, path, s.In); err != nil {
			return nil, fmt.Errorf("--from %w", err)
		}
	}
	return records, nil
}

// progress shows the finished part of the queries on a terminal.
func progress(s cli.Streams) func(done float64) {
	if !cli.Terminal(s.Err) {
		return func(float64) {}
	}
	return func(done float64) { fmt.Fprintf(s.Err, "\rreading Prometheus: %3.0f %%\r", 100*done) }
}

// recommend estimates every workload, and returns those that the flags select, the largest saving first.
func (o *historyOptions) recommend(all []*history.Record, offers offers) []item {
	workloads, fleet := history.Workloads(all, cmp.Or(o.device, offers.card()), o.coverage/100, o.period.Hours())
	var items []item
	for i, r := range all {
		if o.kube.Namespace != "" && o.kube.Namespace != r.Key.Namespace ||
			len(o.workloads) > 0 && !slices.Contains(o.workloads, r.Key.Workload) {
			continue
		}
		items = append(items, o.itemOf(r, fleet.Estimate(workloads[i]), offers))
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(b.saves(), a.saves()) })
	return items
}

const day = 24 * time.Hour

// days is a duration of a flag such as 12h, 14d or 2w.
type days time.Duration

func (d *days) String() string {
	if *d%days(day) == 0 {
		return strconv.Itoa(int(time.Duration(*d)/day)) + "d"
	}
	return strconv.Itoa(int(time.Duration(*d).Hours())) + "h"
}

func (d *days) Type() string { return "time" }

// Set accepts at most 90 days: histories are kept for 100.
func (d *days) Set(text string) error {
	length, err := model.ParseDuration(text)
	if err != nil || length < model.Duration(time.Hour) || length > model.Duration(90*day) {
		return errors.New("accepted: 1h to 90d, such as 12h, 14d or 2w")
	}
	*d = days(length)
	return nil
}
