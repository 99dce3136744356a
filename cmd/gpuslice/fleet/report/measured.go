package report

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/webhook/leader/usage"
)

// Expressions of PromQL. A container holds its slice on each device on which it was seen. Series whose labels Prometheus did not keep
// (exported_namespace) are of nobody, and so are those of guards: pods of tenants serve them, and could write the rows of others.
const (
	devicesSeen = `gpuslice_agent_device_memory_bytes{node!=""}`
	deviceBytes = `max by (node, device, model) (` + devicesSeen + `)`
	sliceBytes  = `max by (namespace, pod, container, node) (gpuslice_agent_memory_slice_bytes{exported_namespace=""})`
	usedBytes   = `max by (namespace, pod, container, node, device) (gpuslice_agent_memory_used_bytes{exported_namespace=""})`
	peakBytes   = `max by (namespace, pod, container, node, device) (gpuslice_agent_memory_peak_bytes{exported_namespace=""})`

	heldBytes = `(0 * ` + peakBytes + ` + on (namespace, pod, container, node) group_left () ` + sliceBytes + `)`
	ofDevice  = ` / on (node, device) group_left () max without (model) (` + deviceBytes + `)`

	seenQuery = `(` + deviceBytes + ` > bool 0)`
	heldQuery = `sum by (namespace, node, device) (` + heldBytes + ofDevice + `)`
	readQuery = `sum by (namespace, node, device) ((` + heldBytes + ` and ` + usedBytes + `)` + ofDevice + `)`
	usedQuery = `sum by (namespace, node, device) (` + usedBytes + ofDevice + `)`
	costQuery = `max by (node) (node_gpu_hourly_cost{node!=""}) * max by (node) (node_gpu_count{node!=""}) > 0`
	gpusQuery = `max by (node) (node_gpu_count{node!=""}) and (` + costQuery + `)`

	// whilePriced follows the expression of a device for the time in which OpenCost has a price of its node.
	whilePriced = ` and on (node) (` + costQuery + `)`
)

const (
	// instancePrefix begins the identifiers of MIG instances, which do not name their device.
	instancePrefix  = "MIG-"
	secondsOfMinute = 60
	minutesOfHour   = 60
	secondsOfHour   = secondsOfMinute * minutesOfHour
	maxDayCost      = 1e9
	// maxMeasured bounds the devices of a month, and the namespaces on them: twice, with those while OpenCost has prices.
	maxMeasured = 1 << 18
)

// place is a device on its node.
type place struct{ node, device string }

// measuredDevice is the measured use of a device in a month.
type measuredDevice struct {
	model   string
	seconds int64                  // in which it was read
	lines   map[string]*usage.Line // by namespace; the amounts of Memory, Used and Read are device units times seconds, too
}

// devices are measured devices by place.
type devices map[place]*measuredDevice

// nodeCost is the cost of a node's devices, and the time in which they had one.
type nodeCost struct {
	cost          float64
	deviceSeconds int64
}

// measured is the knowledge of a Prometheus about a month.
type measured struct {
	devices   devices
	priced    devices              // while OpenCost has a price of their node
	nodes     map[string]*nodeCost // by OpenCost
	instances map[string]bool      // nodes with MIG instances
	size      int
}

// minutes sums up the values of each series of an expression at the minutes of a time.
type minutes func(ctx context.Context, expression string, from, until time.Time, add func(labels map[string]string, sum float64)) error

// measure reads a month; openCost: with what OpenCost knows of nodes.
func measure(ctx context.Context, sum minutes, month period, openCost bool) (*measured, error) {
	m := &measured{devices: devices{}, priced: devices{}, nodes: map[string]*nodeCost{}, instances: map[string]bool{}}
	type query struct {
		expression string
		add        func(labels map[string]string, sum float64)
	}
	of := func(all devices, during string) []query {
		return []query{
			{seenQuery + during, func(l map[string]string, sum float64) {
				if d := m.device(all, l); d != nil {
					d.model = l["model"]
					d.seconds = min(d.seconds+int64(sum)*secondsOfMinute, month.seconds())
				}
			}},
			{heldQuery + during, m.adder(all, func(l *usage.Line, amount int64) { l.Held.Devices += amount; l.Held.Memory += amount })},
			{readQuery + during, m.adder(all, func(l *usage.Line, amount int64) { l.Read += amount })},
			{usedQuery + during, m.adder(all, func(l *usage.Line, amount int64) { l.Used += amount })},
		}
	}
	queries := of(m.devices, "")
	if openCost {
		queries = append(append(queries, of(m.priced, whilePriced)...),
			query{costQuery, func(l map[string]string, sum float64) { m.node(l).cost += min(sum/minutesOfHour, maxDayCost) }},
			query{gpusQuery, func(l map[string]string, sum float64) {
				m.node(l).deviceSeconds += int64(min(sum, maxSum)) * secondsOfMinute
			}})
	}
	for _, q := range queries {
		if err := sum(ctx, q.expression, month.from, month.until.Truncate(time.Minute), q.add); err != nil {
			return nil, err
		}
		if m.size > maxMeasured {
			return nil, fmt.Errorf("more than %d devices and namespaces on them in %s: report fewer days at a time",
				maxMeasured, month.from.Format("2006-01"))
		}
	}
	return m, nil
}

// device is the one of all that labels name; nil: it is a part of one.
func (m *measured) device(all devices, labels map[string]string) *measuredDevice {
	at := place{labels["node"], labels["device"]}
	if strings.HasPrefix(at.device, instancePrefix) {
		m.instances[at.node] = true
		return nil
	}
	d := all[at]
	if d == nil {
		m.size++
		d = &measuredDevice{lines: map[string]*usage.Line{}}
		all[at] = d
	}
	return d
}

// adder adds the devices of a sum of minutes to the line of its namespace.
func (m *measured) adder(all devices, add func(l *usage.Line, amount int64)) func(map[string]string, float64) {
	return func(labels map[string]string, sum float64) {
		d := m.device(all, labels)
		if d == nil {
			return
		}
		l := d.lines[labels["namespace"]]
		if l == nil {
			m.size++
			l = &usage.Line{Key: usage.Key{Namespace: labels["namespace"]}}
			d.lines[l.Namespace] = l
		}
		add(l, int64(min(sum, maxSum)*secondsOfMinute*usage.DeviceUnits))
	}
}

// maxSum bounds devices times the minutes of a day, so that those of a month fit an int64.
const maxSum = 1 << 22

func (m *measured) node(labels map[string]string) *nodeCost {
	n := m.nodes[labels["node"]]
	if n == nil {
		m.size++
		n = &nodeCost{}
		m.nodes[labels["node"]] = n
	}
	return n
}
