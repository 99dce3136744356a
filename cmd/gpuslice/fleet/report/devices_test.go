package report

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/webhook/leader/usage"
)

var october = period{time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}

var models = []string{"NVIDIA A100-SXM4-80GB", "NVIDIA L4", "Tesla T4"}

// randomMonth is a month of some nodes, of which OpenCost knows some, and some for a part of the month. A device was seen all the time, for
// a part, or until another replaced it; of some nodes, OpenCost has more devices than were seen, or fewer.
func randomMonth(random *rand.Rand, nodes int) *measured {
	m := &measured{devices: devices{}, priced: devices{}, nodes: map[string]*nodeCost{}, instances: map[string]bool{}}
	for n := range nodes {
		node, until := fmt.Sprint("gpu-", n), random.Int64N(october.seconds()+1)
		if random.IntN(2) == 0 {
			until = october.seconds()
		}
		openCost := random.IntN(2) == 0
		if openCost {
			m.nodes[node] = &nodeCost{random.Float64() * 5000, until * random.Int64N(6)}
		}
		add := func(seconds int64) {
			d := &measuredDevice{model: models[random.IntN(3)], seconds: seconds, lines: map[string]*usage.Line{}}
			for k := range random.IntN(4) {
				held := random.Int64N(1 + d.seconds*usage.DeviceUnits/2)
				d.lines[fmt.Sprint("team-", k)] = &usage.Line{Key: usage.Key{Namespace: fmt.Sprint("team-", k)},
					Held: usage.Amount{Devices: held, Memory: held}, Read: random.Int64N(held + 1), Used: random.Int64N(held + 1)}
			}
			at := place{node, fmt.Sprint("GPU-", n, "-", len(m.devices))}
			m.devices[at] = d
			if openCost {
				m.priced[at] = &measuredDevice{model: d.model, seconds: min(d.seconds, until), lines: d.lines}
			}
		}
		for range random.IntN(4) {
			switch seconds := random.Int64N(october.seconds() + 1); random.IntN(3) {
			case 0:
				add(october.seconds())
			case 1:
				add(seconds)
			default:
				add(seconds)
				add(october.seconds() - seconds)
			}
		}
	}
	return m
}

// randomInvoice has lines of nodes, models, both, and of any model.
func randomInvoice(random *rand.Rand) *invoice {
	in := &invoice{Provider: "a", Account: "b", Currency: "EUR", Prices: openCostPrices}
	for _, d := range []invoiceDevice{{Node: "gpu-0"}, {Node: "gpu-1", Pool: "a100"}, {Node: "gpu-1", Pool: "nvidia-l4"},
		{Node: "gpu-2", Pool: "*"}, {Pool: "l4"}, {Pool: "tesla-t4"}, {Pool: "*"}} {
		if random.IntN(3) > 0 && (d.Pool != "*" || random.IntN(4) == 0) {
			d.Count, d.Price = 1+random.IntN(12), random.Float64()*10
			in.Devices = append(in.Devices, d)
		}
	}
	return in
}

// TestDevicesAddUp: in random months of 10,000 devices and with random invoices, the rows of each device add up to whole cents and to the
// time for which it was seen, and those of each line and node to its cost; rows are valid.
func TestDevicesAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for count := 0; count < 10_000; {
		in, m := randomInvoice(random), randomMonth(random, 20)
		lineOf := func(c *charge) string { // of a charge: its line, else its node
			if c.node == "" {
				return c.path
			}
			if i := in.lineOf(c.node, c.pool); i >= 0 {
				return unseen(in.Devices[i].Node, in.Devices[i].Pool).path
			}
			return unseen(c.node, "").path
		}
		want, got := map[string]micros{}, map[string]micros{}
		for _, line := range in.Devices {
			want[unseen(line.Node, line.Pool).path] += inCents(line.Price * float64(line.Count) * 31 * 24)
		}
		costs := map[string]micros{}
		for node, n := range m.nodes {
			costs[node] = inCents(n.cost)
		}
		all, _ := in.ofDevices(october, m)
		for node := range m.nodes { // those that neither a line has, nor one of its devices
			want[unseen(node, "").path] += costs[node]
		}
		for _, c := range all {
			rows, _ := in.focusRows(c, random.IntN(2) == 0)
			var cost float64
			for _, row := range rows {
				n, err := strconv.ParseFloat(row["BilledCost"], 64)
				if err != nil {
					t.Fatal(err)
				}
				cost += n
			}
			if math.Abs(cost-float64(c.cost)/1e6) > 1e-6 || c.cost%cent != 0 || c.cost < 0 {
				t.Fatalf("%s: rows are %f in all, cost %v", c.path, cost, c.cost)
			}
			if count%100 == 0 {
				for _, row := range rows {
					for _, problem := range row.problems() {
						t.Errorf("%s %s: %s", row["ResourceId"], row["x_GpusliceShare"], problem)
					}
				}
			}
			got[lineOf(c)] += c.cost
			if c.node != "" {
				count++
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("charges by line and node are %v, want %v", got, want)
		}
	}
}

// days are device units times seconds.
func days(n float64) int64 { return int64(n * 86400 * usage.DeviceUnits) }

func lineFor(namespace string, held, read, used float64) *usage.Line {
	return &usage.Line{Key: usage.Key{Namespace: namespace},
		Held: usage.Amount{Devices: days(held), Memory: days(held)}, Read: days(read), Used: days(used)}
}

func seenFor(days float64, model string, lines ...*usage.Line) *measuredDevice {
	d := &measuredDevice{model: model, seconds: int64(days * 86400), lines: map[string]*usage.Line{}}
	for _, l := range lines {
		d.lines[l.Namespace] = l
	}
	return d
}

// TestOfDevices: who pays for what.
func TestOfDevices(t *testing.T) {
	const a100, day = "NVIDIA A100-SXM4-80GB", 86400
	for name, c := range map[string]struct {
		lines       []invoiceDevice
		m           measured
		want, notes string
	}{
		"nodes and models": {
			lines: []invoiceDevice{{Node: "n", Count: 2, Price: 1}, {Pool: "tesla-t4", Count: 2, Price: 0.5}, {Node: "gone", Count: 1, Price: 0.01}},
			m: measured{instances: map[string]bool{"n": true}, nodes: map[string]*nodeCost{"away": {10, day}, "n": {7, 1}},
				devices: devices{{"n", "GPU-1"}: seenFor(31, a100, lineFor("a", 15.5, 15.5, 3.1)),
					{"n", "GPU-2"}: seenFor(21, a100), {"n", "GPU-3"}: seenFor(1, a100),
					{"p", "GPU-4"}: seenFor(31, "Tesla T4"), {"q", "GPU-7"}: seenFor(1, "H")}},
			want: `nodes/n/devices/GPU-1 aused=74.40 aunused=297.60 idle=372.00
nodes/n/devices/GPU-2 idle=504.00
nodes/n/devices/GPU-3 idle=24.00
nodes/n/unseen unread=216.00
nodes/p/devices/GPU-4 idle=372.00
pools/tesla-t4/unseen unread=372.00
nodes/gone/unseen unread=7.44
nodes/away/unseen unread=10.00
`,
			notes: `2026-10: no charge: 1 devices of node q have no price in --charges
2026-10: MIG instances of node n do not name their device: what those devices cost is unread; report without --by device`,
		},
		"two devices of a model that two others replaced": {
			lines: []invoiceDevice{{Pool: "l4", Count: 2, Price: 1}},
			m: measured{devices: devices{{"a", "GPU-1"}: seenFor(17, "NVIDIA L4", lineFor("t", 17, 17, 17)),
				{"a", "GPU-2"}: seenFor(17, "NVIDIA L4"),
				{"b", "GPU-3"}: seenFor(13, "NVIDIA L4", lineFor("t", 13, 13, 13)), {"b", "GPU-4"}: seenFor(13, "NVIDIA L4")}},
			want: `nodes/a/devices/GPU-1 tused=408.00
nodes/a/devices/GPU-2 idle=408.00
nodes/b/devices/GPU-3 tused=312.00
nodes/b/devices/GPU-4 idle=312.00
pools/l4/unseen unread=48.00
`,
		},
		"more devices than the line has": {
			lines: []invoiceDevice{{Pool: "l4", Count: 1, Price: 1}},
			m: measured{nodes: map[string]*nodeCost{"a": {100, 31 * day}},
				devices: devices{{"a", "GPU-1"}: seenFor(31, "NVIDIA L4", lineFor("t", 31, 31, 31)), {"b", "GPU-2"}: seenFor(31, "NVIDIA L4")}},
			want: `nodes/a/devices/GPU-1 tused=372.00
nodes/b/devices/GPU-2 idle=372.00
`,
			notes: `2026-10: devices[0] of --charges: its devices were seen for 744.00 device-hours more than count has: the cost is divided by how long each was seen`,
		},
		"a node of eight by OpenCost, of which two were not seen": {
			m: openCostNode(nodeCost{800, 8 * 31 * day},
				devices{{"o", "GPU-1"}: seenFor(31, "H", lineFor("a", 31, 0, 0)), {"o", "GPU-2"}: seenFor(31, "H"), {"o", "GPU-3"}: seenFor(31, "H"),
					{"o", "GPU-4"}: seenFor(31, "H"), {"o", "GPU-5"}: seenFor(31, "H"), {"o", "GPU-6"}: seenFor(15.5, "H")}, 31),
			want: `nodes/o/devices/GPU-1 aunknown=100.00
nodes/o/devices/GPU-2 idle=100.00
nodes/o/devices/GPU-3 idle=100.00
nodes/o/devices/GPU-4 idle=100.00
nodes/o/devices/GPU-5 idle=100.00
nodes/o/devices/GPU-6 idle=50.00
nodes/o/unseen unread=250.00
`,
		},
		"OpenCost since the last day": {
			m: openCostNode(nodeCost{100, day}, devices{{"o", "GPU-1"}: seenFor(31, "H", lineFor("a", 7.75, 7.75, 0))}, 1),
			want: `nodes/o/devices/GPU-1 aunused=25.00 idle=75.00
`,
			notes: `2026-10: no charge: OpenCost had no price for 720.00 device-hours in which devices were seen, of node o`,
		},
		"more held than there was": {
			lines: []invoiceDevice{{Node: "n", Count: 1, Price: 1}},
			m:     measured{devices: devices{{"n", "GPU-1"}: seenFor(31, a100, lineFor("a", 31, 31, 31), lineFor("b", 31, 31, 31))}},
			want: `nodes/n/devices/GPU-1 aused=372.00 bused=372.00
`,
			notes: `2026-10: more was held of 1 devices than there was, such as nodes/n/devices/GPU-1: their cost is divided by what was held`,
		},
		"nothing seen": {
			lines: []invoiceDevice{{Node: "n", Count: 1, Price: 1}},
			want: `nodes/n/unseen unread=744.00
`,
			notes: `2026-10: no device was seen: rows by device are of what agents measure, and Prometheus has no gpuslice_agent_device_memory_bytes with a label node`,
		},
	} {
		in := &invoice{Provider: "a", Account: "b", Currency: "EUR", Devices: c.lines}
		all, notes := in.ofDevices(october, &c.m)
		var got strings.Builder
		for _, c := range all {
			rows, _ := in.focusRows(c, true)
			fmt.Fprint(&got, c.path)
			for _, row := range rows {
				if row["BilledCost"] != "0.000000" {
					fmt.Fprintf(&got, " %s%s=%s", row["AllocatedResourceName"], row["x_GpusliceShare"], strings.TrimSuffix(row["BilledCost"], "0000"))
				}
			}
			fmt.Fprintln(&got)
		}
		if got.String() != c.want {
			t.Errorf("%s: charges\n%swant\n%s", name, got.String(), c.want)
		}
		if got := strings.Join(notes, "\n"); got != c.notes {
			t.Errorf("%s: notes\n%s\nwant\n%s", name, got, c.notes)
		}
	}
}

// openCostNode is a month with one node, of which OpenCost had a price in its last days.
func openCostNode(cost nodeCost, seen devices, last float64) measured {
	m := measured{nodes: map[string]*nodeCost{"o": &cost}, devices: seen, priced: devices{}}
	for at, d := range seen {
		p := &measuredDevice{model: d.model, seconds: min(d.seconds, int64(last*86400)), lines: map[string]*usage.Line{}}
		for name, l := range d.lines {
			p.lines[name] = lineFor(name, float64(l.Held.Devices)/float64(days(31))*last, float64(l.Read)/float64(days(31))*last, 0)
		}
		m.priced[at] = p
	}
	return m
}

// TestDuplicateLines: rows by device have one line for each device.
func TestDuplicateLines(t *testing.T) {
	for name, c := range map[string]struct {
		lines []invoiceDevice
		bad   bool
	}{
		"a model":                          {[]invoiceDevice{{Pool: "l4"}, {Pool: "NVIDIA-L4"}}, true},
		"a node":                           {[]invoiceDevice{{Node: "a"}, {Pool: "l4"}, {Node: "a"}}, true},
		"a node's rest":                    {[]invoiceDevice{{Node: "a"}, {Node: "a", Pool: "*"}}, true},
		"a node and one of its models":     {[]invoiceDevice{{Node: "a"}, {Node: "a", Pool: "l4"}}, false},
		"two nodes of a model, and others": {[]invoiceDevice{{Node: "a", Pool: "l4"}, {Node: "b", Pool: "l4"}, {Pool: "l4"}}, false},
	} {
		in := &invoice{Devices: c.lines}
		if err := in.checkDevices(); (err != nil) != c.bad {
			t.Errorf("%s: %v", name, err)
		}
	}
	in := &invoice{Devices: []invoiceDevice{{Node: "a"}, {Node: "a", Pool: "l4"}, {Pool: "l4"}}}
	if rest, l4, other := in.lineOf("a", "Tesla T4"), in.lineOf("a", "NVIDIA L4"), in.lineOf("b", "NVIDIA L4"); rest != 0 ||
		l4 != 1 || other != 2 {
		t.Errorf("lines %d, %d and %d", rest, l4, other)
	}
}

// TestMeasure adds the sums of days.
func TestMeasure(t *testing.T) {
	device := map[string]string{"node": "n", "device": "GPU-1", "model": "M", "namespace": "a"}
	answers := map[string]func(add func(map[string]string, float64)){
		seenQuery: func(add func(map[string]string, float64)) {
			add(device, 1440)
			add(device, 60)
			add(map[string]string{"node": "n", "device": "MIG-1"}, 60)
		},
		heldQuery: func(add func(map[string]string, float64)) { add(device, 30); add(device, 30.5) },
		readQuery: func(add func(map[string]string, float64)) { add(device, 20) },
		usedQuery: func(add func(map[string]string, float64)) { add(device, 10) },
		costQuery: func(add func(map[string]string, float64)) { add(map[string]string{"node": "n"}, 600) },

		seenQuery + whilePriced: func(add func(map[string]string, float64)) { add(device, 300) },
		heldQuery + whilePriced: func(add func(map[string]string, float64)) { add(device, 15) },
		readQuery + whilePriced: func(add func(map[string]string, float64)) { add(device, 5) },
		usedQuery + whilePriced: func(add func(map[string]string, float64)) { add(device, 4) },

		gpusQuery: func(add func(map[string]string, float64)) { add(map[string]string{"node": "n"}, 1200) },
	}
	asked := 0
	m, err := measure(t.Context(),
		func(_ context.Context, expression string, from, until time.Time, add func(map[string]string, float64)) error {
			if !from.Equal(october.from) || !until.Equal(october.until) {
				t.Errorf("asked about %s to %s", from, until)
			}
			asked++
			answers[expression](add)
			return nil
		}, october, true)
	if err != nil || asked != len(answers) {
		t.Fatalf("%d queries, %v", asked, err)
	}
	d := m.devices[place{"n", "GPU-1"}]
	minutes := func(n float64) int64 { return int64(n * 60 * usage.DeviceUnits) }
	if l := d.lines["a"]; d.model != "M" || d.seconds != 1500*60 || l.Held.Devices != minutes(60.5) || l.Held.Memory != minutes(60.5) ||
		l.Read != minutes(20) || l.Used != minutes(10) || !m.instances["n"] {
		t.Errorf("%+v, %+v, %v", d, l, m.instances)
	}
	d = m.priced[place{"n", "GPU-1"}]
	if l := d.lines["a"]; d.seconds != 300*60 || l.Held.Devices != minutes(15) || l.Read != minutes(5) || l.Used != minutes(4) {
		t.Errorf("while OpenCost had a price: %+v, %+v", d, l)
	}
	if n := *m.nodes["n"]; n != (nodeCost{10, 1200 * 60}) {
		t.Errorf("%+v", n)
	}
}
