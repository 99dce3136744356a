package report

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/history"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/price"
	"github.com/gpuslice/gpuslice/webhook/leader/usage"
)

// runDevices prints the rows of FOCUS by device.
func (o *options) runDevices(ctx context.Context, s cli.Streams, span period) error {
	server, _, err := o.prometheus.Connect(ctx, s, &o.kube)
	if err != nil {
		return err
	}
	sum, err := o.ofCluster(ctx, server, span)
	if err != nil {
		return err
	}
	var all []*charge
	var notes []string
	for _, month := range span.months() {
		m, err := measure(ctx, sum, month, o.charges.Prices == openCostPrices)
		if err != nil {
			return err
		}
		charges, more := o.charges.ofDevices(month, m)
		all, notes = append(all, charges...), append(notes, more...)
	}
	for _, text := range server.Incomplete {
		notes = append(notes, "the server's answers are incomplete, so use and time seen may be too small: "+text)
	}
	more, err := o.printFOCUS(s.Out, all)
	for _, note := range append(notes, more...) {
		fmt.Fprintln(s.Err, note)
	}
	return err
}

// ofCluster sums up the series of one cluster: nodes and pods of two may have one name.
func (o *options) ofCluster(ctx context.Context, server *history.Prometheus, span period) (minutes, error) {
	clusters, err := server.Clusters(ctx, devicesSeen, span.from, span.until)
	if err != nil {
		return nil, err
	}
	chosen := o.prometheus.Cluster()
	switch matcher, known := clusters[chosen]; {
	case chosen != "" && !known:
		return nil, fmt.Errorf("--prometheus-cluster %q: the server has %.300s", chosen, strings.Join(slices.Sorted(maps.Keys(clusters)), ", "))
	case chosen == "" && len(clusters) > 1:
		return nil, history.SeveralClustersError(slices.Sorted(maps.Keys(clusters)))
	case chosen != "":
		return func(ctx context.Context, expression string, from, until time.Time, add func(labels map[string]string, sum float64)) error {
			return server.Sum(ctx, strings.ReplaceAll(expression, "{", "{"+matcher+","), from, until, add)
		}, nil
	}
	return server.Sum, nil
}

// ofDevices are the charges of a month: of each device for the time in which it was seen, and of the rest of the invoice.
func (in *invoice) ofDevices(month period, m *measured) (all []*charge, notes []string) {
	note := func(format string, args ...any) {
		notes = append(notes, month.from.Format("2006-01")+": "+fmt.Sprintf(format, args...))
	}
	for _, line := range in.Devices {
		delete(m.nodes, line.Node)
	}
	lines, rest := make([][]place, len(in.Devices)), []place{}
	for at, d := range m.devices {
		if i := in.lineOf(at.node, d.model); i >= 0 {
			lines[i] = append(lines[i], at)
			delete(m.nodes, at.node)
		} else {
			rest = append(rest, at)
		}
	}
	for i, line := range in.Devices {
		hours := float64(line.Count) * float64(month.seconds()) / secondsOfHour
		charges, beyond := m.devices.divide(lines[i], month, inCents(hours*line.Price),
			int64(line.Count)*month.seconds(), unseen(line.Node, line.Pool))
		all = append(all, charges...)
		if beyond > 0 {
			note("devices[%d] of --charges: its devices were seen for %s device-hours more than count has: the cost is divided by how long each was seen",
				i, deviceHours(beyond))
		}
	}
	priced := map[string][]place{}
	for at := range m.priced {
		priced[at.node] = append(priced[at.node], at)
	}
	for _, node := range slices.Sorted(maps.Keys(m.nodes)) {
		n := m.nodes[node]
		charges, beyond := m.priced.divide(priced[node], month, inCents(n.cost), n.deviceSeconds, unseen(node, ""))
		all = append(all, charges...)
		if beyond > 0 {
			note("node %s: its devices were seen for %s device-hours more than OpenCost has: the cost is divided by how long each was seen",
				node, deviceHours(beyond))
		}
	}
	return all, append(notes, m.gaps(month, rest, all)...)
}

// gaps are notes on measurements that are not charged, or not as they were measured. rest are devices without a line.
func (m *measured) gaps(month period, rest []place, all []*charge) (notes []string) {
	note := func(format string, args ...any) {
		notes = append(notes, month.from.Format("2006-01")+": "+fmt.Sprintf(format, args...))
	}
	without, before, seconds := map[string]int{}, map[string]bool{}, int64(0)
	for _, at := range rest {
		late := m.devices[at].seconds
		if d := m.priced[at]; d != nil {
			late -= d.seconds
		}
		switch {
		case m.nodes[at.node] == nil:
			without[at.node]++
		case late > 0:
			before[at.node] = true
			seconds += late
		}
	}
	for _, node := range slices.Sorted(maps.Keys(without)) {
		note("no charge: %d devices of node %s have no price in --charges", without[node], node)
	}
	if seconds > 0 {
		note("no charge: OpenCost had no price for %s device-hours in which devices were seen, of node %s",
			deviceHours(seconds), strings.Join(slices.Sorted(maps.Keys(before)), ", "))
	}
	var over []string
	for _, c := range all {
		if c.held() > c.capacity+secondsOfMinute*usage.DeviceUnits {
			over = append(over, c.path)
		}
	}
	if len(over) > 0 {
		note("more was held of %d devices than there was, such as %s: their cost is divided by what was held", len(over), over[0])
	}
	if len(m.instances) > 0 {
		note("MIG instances of node %s do not name their device: what those devices cost is unread; report without --by device",
			strings.Join(slices.Sorted(maps.Keys(m.instances)), ", "))
	}
	switch {
	case len(m.devices) == 0:
		note("no device was seen: rows by device are of what agents measure, and Prometheus has no gpuslice_agent_device_memory_bytes with a label node")
	case !slices.ContainsFunc(slices.Collect(maps.Values(m.devices)), func(d *measuredDevice) bool { return len(d.lines) > 0 }):
		note("no slice was measured: does Prometheus keep the labels of agents, with honorLabels?")
	}
	return notes
}

// deviceHours is a text for people.
func deviceHours(seconds int64) string {
	return strconv.FormatFloat(float64(seconds)/secondsOfHour, 'f', 2, 64)
}

// lineOf is the index of the line of the invoice for a device: of its node, else of its model; -1: it has none.
func (in *invoice) lineOf(node, model string) int {
	pool := strings.TrimPrefix(strings.ReplaceAll(strings.ToLower(model), " ", "-"), "nvidia-")
	for _, of := range []string{node, ""} {
		names := price.List{}
		for _, d := range in.Devices {
			if d.Node == of {
				names[cmp.Or(d.Pool, price.Any)] = d.Price
			}
		}
		if _, name := priceOf(names, pool); name != "" {
			return slices.IndexFunc(in.Devices, func(d invoiceDevice) bool { return d.Node == of && cmp.Or(d.Pool, price.Any) == name })
		}
	}
	return -1
}

// divide divides the cost of so many device-seconds among devices by the time for which each was seen; the remainder is a charge of the
// rest. beyond are seconds for which devices were seen beside them: no device is left out, and each has less.
func (all devices) divide(places []place, month period, cost micros, seconds int64, rest resource) (charges []*charge, beyond int64) {
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.device, b.device))
	})
	var amounts []int64
	for _, at := range places {
		amounts = append(amounts, all[at].seconds)
		seconds -= all[at].seconds
	}
	left := max(seconds, 0)
	parts := inParts(cost, append(amounts, left))
	for i, at := range places {
		d := all[at]
		c := &charge{bill: bill{parts[i], d.seconds * usage.DeviceUnits}, from: month.from,
			until: month.until, lines: map[usage.Key]*usage.Line{},
			resource: resource{path: "nodes/" + at.node + "/devices/" + at.device,
				name: at.device, kind: "GPU", pool: cmp.Or(d.model, "GPU"), node: at.node}}
		for _, l := range d.lines {
			c.lines[l.Key] = l
		}
		charges = append(charges, c)
	}
	if last := parts[len(places)]; left > 0 || last > 0 {
		charges = append(charges, &charge{resource: rest, bill: bill{last, left * usage.DeviceUnits},
			from: month.from, until: month.until, unread: left * usage.DeviceUnits})
	}
	return charges, left - seconds
}

// unseen is the part of a line or node that is paid for and was not measured.
func unseen(node, pool string) resource {
	r := resource{path: "unseen", name: cmp.Or(node, pool), kind: "GPUs that were not seen", pool: cmp.Or(pool, "GPU")}
	if pool != "" {
		r.path = "pools/" + pool + "/" + r.path
	}
	if node != "" {
		r.path = "nodes/" + node + "/" + r.path
	}
	return r
}

// held is the amount that was held of a charge.
func (c *charge) held() (sum int64) {
	for _, l := range c.lines {
		sum += l.Held.Devices
	}
	return sum
}

// inParts divides a cost of whole cents in whole cents, by amounts of which the last takes the remainder.
func inParts(cost micros, amounts []int64) (parts []micros) {
	of, sum, paid := int64(0), int64(0), micros(0)
	for _, amount := range amounts {
		of += amount
	}
	for i, amount := range amounts {
		sum += amount
		upTo := part(cost/cent, sum, of) * cent
		if i == len(amounts)-1 {
			upTo = cost
		}
		parts, paid = append(parts, upTo-paid), upTo
	}
	return parts
}
