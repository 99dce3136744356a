package peaks

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/webhook/leader/workload"
)

// busyDay is a Day of workloads that all run, with peaks that differ by up to a twentieth from hour to hour.
func busyDay(workloads int) *Day {
	r := rand.New(rand.NewPCG(1, 1))
	t := newTable(noon)
	for i := range workloads {
		l := t.line(container(fmt.Sprint("team-", i%50), fmt.Sprintf("inference-%06x", r.IntN(1<<24)+i)))
		l.Slice, l.Pods = 8<<10, 1+r.IntN(4)
		base := 1000 + r.IntN(60_000)
		for hour := range l.Peaks {
			l.Peaks[hour], l.Seen[hour] = levelOf(int64(base+r.IntN(base/20))), 1<<slotsOfHour-1
		}
	}
	return t.day()
}

// BenchmarkRead is what gpuslice recommend does with the record of 10,000 workloads over two weeks.
func BenchmarkRead(b *testing.B) {
	data, err := busyDay(maxLines).encode()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r := &Record{Workloads: map[workload.Container]*Workload{}}
		for day := range 14 {
			d, err := decode(data, noon.Format(time.DateOnly))
			if err != nil {
				b.Fatal(err)
			}
			r.add(noon.Add(time.Duration(day-14)*24*time.Hour), d)
		}
		if len(r.Workloads) != maxLines {
			b.Fatalf("%d workloads", len(r.Workloads))
		}
	}
}
