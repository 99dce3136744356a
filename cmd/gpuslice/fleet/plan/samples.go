package plan

import (
	"context"
	"fmt"
	"math"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/history"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/snapshot"
)

// weekHours is for how long recommended sizes are to hold, as those of gpuslice recommend.
const weekHours = 7 * 24

// historyDays is for how many days the leader's record is read, as gpuslice recommend reads it.
const historyDays = 14

// recommend returns the size in MiB that gpuslice recommend gives for a pod's containers together: from the files of --samples, or, of
// the cluster, from what gpuslice's leader recorded. The note is not empty where there is no record.
func (o *options) recommend(ctx context.Context, s cli.Streams) (sizeOf func(*inventory.Pod) (int64, bool), note string, err error) {
	switch {
	case o.sizes != snapshot.Recommended:
		return nil, "", nil
	case len(o.samples) > 0:
		sizeOf, err = readSamples(ctx, s, o.source.System, o.samples)
		return sizeOf, "", err
	case o.source.From != "":
		return nil, "", nil
	}
	connection, err := o.source.Kube.Connect(s)
	if err != nil {
		return nil, "", err
	}
	recorded, err := history.ReadRecord(ctx, connection.Client, o.source.System, s.Now().AddDate(0, 0, -historyDays), s.Now())
	switch {
	case err != nil:
		return nil, fmt.Sprintf(
			"recommended sizes are those of a built-in table, since the record of gpuslice's leader cannot be read: %v", err), nil
	case len(recorded.Workloads) == 0:
		return nil,
			"recommended sizes are those of a built-in table, since gpuslice's leader recorded no use: name files of samples with --samples", nil
	}
	return sizesOf(history.Recorded(recorded).All()), "", nil
}

func readSamples(ctx context.Context, s cli.Streams, system string, files []string) (func(*inventory.Pod) (int64, bool), error) {
	records := history.NewRecords()
	records.System = system
	for _, path := range files {
		if err := records.ReadFile(ctx, path, s.In); err != nil {
			return nil, fmt.Errorf("--samples %w", err)
		}
	}
	all := records.All()
	if len(all) == 0 {
		return nil, fmt.Errorf("--samples: no samples of GPU memory by pod were found in %d files", len(files))
	}
	for _, r := range all {
		if r.Key.Cluster != all[0].Key.Cluster {
			return nil, fmt.Errorf("--samples: samples of several clusters, such as %q and %q: name files of one", all[0].Key.Cluster, r.Key.Cluster)
		}
	}
	for _, text := range records.Incomplete {
		fmt.Fprintln(s.Err, "--samples are incomplete, so sizes may be too small:", text)
	}
	return sizesOf(all), nil
}

func sizesOf(all []*history.Record) func(*inventory.Pod) (int64, bool) {
	sizes := map[history.Key]int64{} // of workloads; 0: one of the containers has none
	workloads, learned := history.Workloads(all, 0, snapshot.Coverage, weekHours)
	for i, r := range all {
		k := history.Key{Namespace: r.Key.Namespace, Workload: r.Key.Workload}
		sum, known := sizes[k]
		size := int64(math.Ceil(learned.Estimate(workloads[i]).Size))
		if sizes[k] = sum + size; r.Shared || size == 0 || known && sum == 0 {
			sizes[k] = 0
		}
	}
	return func(p *inventory.Pod) (int64, bool) {
		owner := history.OwnerOf(p.Name)
		k := history.Key{Namespace: p.Namespace, Workload: owner.Name}
		size, sampled := sizes[k]
		if !sampled { // as recorded, where owners of several kinds have one name
			k.Workload = owner.Kind + "/" + owner.Name
			size, sampled = sizes[k]
		}
		return size, sampled
	}
}
