package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/webhook/leader/usage"
)

// focusFormat is the format of -o for FOCUS 1.3, https://focus.finops.org.
const focusFormat = "focus"

// focusMethod names how costs are divided. The page of this command describes it.
const focusMethod = "gpuslice-held-device-seconds-v1"

var currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)

// focusColumns are the mandatory columns of FOCUS 1.3, those of split cost allocation, and one of our own.
var focusColumns = []string{
	"AllocatedMethodDetails", "AllocatedMethodId", "AllocatedResourceId", "AllocatedResourceName", "AllocatedTags",
	"BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart",
	"ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart",
	"ConsumedQuantity", "ConsumedUnit", "ContractedCost", "EffectiveCost", "HostProviderName", "InvoiceIssuerName", "ListCost",
	"PricingQuantity", "PricingUnit", "ProviderName", "PublisherName", "ResourceId", "ResourceName", "ResourceType",
	"ServiceCategory", "ServiceName", "ServiceProviderName", "ServiceSubcategory",
	"SkuId", "SkuPriceId", "SubAccountId", "SubAccountName", "Tags",
	"x_GpusliceShare",
}

// Values of x_GpusliceShare.
const (
	shareHeld     = "held"
	shareUsed     = "used"     // of held
	shareUnused   = "unused"   // of held
	shareUnknown  = "unknown"  // of held: its use was not measured
	shareIdle     = "idle"     // nobody held it
	shareUnread   = "unread"   // nobody counted: it may have been held
	shareRounding = "rounding" // less than a millionth for each other row
)

// charge is a cost to divide: of a pool of the invoice, or of a device, in a calendar month, as far as the report covers it.
type charge struct {
	resource
	bill
	from, until time.Time
	lines       map[usage.Key]*usage.Line
	unread      int64 // device units times seconds that may have been held beside the lines
}

// resource is a thing that is paid for.
type resource struct {
	path, name, kind string
	pool             string // or model: the SKU
	node             string // of a device; "": this is a pool
}

// charges are those of the invoice by month, with the holdings of each, and notes on pools that the invoice does not have.
func (in *invoice) charges(span period, days []*usage.Day) (all []*charge, notes []string) {
	uncharged := map[string]bool{}
	for _, month := range span.months() {
		byPool, counted := map[string]*charge{}, int64(0)
		for _, d := range in.Devices {
			byPool[d.Pool] = &charge{resource: resource{path: "pools/" + d.Pool, name: d.Pool, kind: "GPU pool", pool: d.Pool},
				bill: in.of(d.Pool, month.from, month.until), from: month.from, until: month.until, lines: map[usage.Key]*usage.Line{}}
		}
		for _, d := range days {
			if !firstOfMonth(d.From.Time()).Equal(firstOfMonth(month.from)) {
				continue
			}
			counted += int64(d.Until - d.From)
			for _, l := range d.Lines {
				l.Pool = cmp.Or(l.Pool, other)
				if name, ok := in.chargeOf(l.Pool); ok {
					byPool[name].add(l)
				} else {
					uncharged[l.Pool] = true
				}
			}
		}
		for _, pool := range slices.Sorted(maps.Keys(byPool)) {
			c := byPool[pool]
			c.unread += max(month.seconds()-counted, 0) * (c.capacity / max(month.seconds(), 1))
			all = append(all, c)
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(uncharged)) {
		notes = append(notes, fmt.Sprintf("no charge: pool %s has no devices in --charges", pool))
	}
	return all, notes
}

func (c *charge) add(l usage.Line) {
	have := c.lines[l.Key]
	if have == nil {
		have = &usage.Line{Key: l.Key}
		c.lines[l.Key] = have
	}
	have.Held.Memory += l.Held.Memory
	have.Held.Devices += l.Held.Devices
	have.Used += l.Used
	have.Read += l.Read
	c.unread += l.Unsure.Devices
}

// focusRow is a row by column.
type focusRow map[string]string

// focusRows are those that divide a charge. The note is not empty if more was held than the invoice has.
func (in *invoice) focusRows(m *charge, used bool) (rows []focusRow, note string) {
	keys := slices.SortedFunc(maps.Keys(m.lines), func(a, b usage.Key) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Label, b.Label))
	})
	var parts []heldPart
	for _, k := range keys {
		parts = append(parts, partsOf(m.lines[k], used)...)
	}
	var held []int64
	for _, p := range parts {
		held = append(held, p.amount)
	}
	d := m.divide(held, m.unread)
	if d.of > m.capacity && m.node == "" { // devices share one note: there may be thousands
		note = fmt.Sprintf("pool %s: more was held in %s than the devices of --charges: the cost is divided by what was held",
			m.name, m.from.Format("2006-01"))
	}
	for i, p := range parts {
		row := in.row(m, p.share, d.held[i], fraction{p.amount, d.of})
		m.allocate(row, p.key)
		rows = append(rows, row)
	}
	return append(rows, in.row(m, shareIdle, d.idle, fraction{d.idleAmount, d.of}),
		in.row(m, shareUnread, d.unread, fraction{d.unreadAmount, d.of}),
		in.row(m, shareRounding, d.rounding, fraction{0, d.of})), note
}

// heldPart is the holding of one key, or a part of it by its use.
type heldPart struct {
	key    usage.Key
	share  string
	amount int64 // device units times seconds
}

// partsOf divides a holding by the use of its memory, if that was read.
func partsOf(l *usage.Line, used bool) []heldPart {
	if !used {
		return []heldPart{{l.Key, shareHeld, l.Held.Devices}}
	}
	memory := max(l.Held.Memory, 1)
	read := min(l.Read, memory)
	usedPart := int64(part(micros(l.Held.Devices), min(l.Used, read), memory))
	unknown := int64(part(micros(l.Held.Devices), memory-read, memory))
	return []heldPart{{l.Key, shareUsed, usedPart}, {l.Key, shareUnused, l.Held.Devices - usedPart - unknown}, {l.Key, shareUnknown, unknown}}
}

// fraction is device units times seconds, of those that were divided.
type fraction struct{ amount, of int64 }

func (f fraction) ratio() float64 {
	if f.of == 0 {
		return 0
	}
	return float64(f.amount) / float64(f.of)
}

func (f fraction) hours() string {
	return strconv.FormatFloat(usage.Amount{Devices: f.amount}.DeviceHours(), 'f', 6, 64)
}

const focusTime = "2006-01-02T15:04:05Z"

// focusUnit is that of quantities.
const focusUnit = "GPU-Hours"

// row is a row of a charge that is allocated to nobody.
func (in *invoice) row(m *charge, share string, cost micros, f fraction) focusRow {
	month := firstOfMonth(m.from)
	// plain values
	details, _ := json.Marshal(map[string]any{
		"Elements": []map[string]any{{"AllocatedRatio": f.ratio(), "UsageUnit": focusUnit, "UsageQuantity": json.Number(f.hours())}}})
	return focusRow{
		"AllocatedMethodDetails": string(details), "AllocatedMethodId": focusMethod,
		"BilledCost": cost.String(), "ContractedCost": cost.String(), "EffectiveCost": cost.String(), "ListCost": cost.String(),
		"BillingAccountId": in.Account, "BillingAccountName": in.Account, "BillingCurrency": in.Currency,
		"BillingPeriodStart": month.Format(focusTime), "BillingPeriodEnd": month.AddDate(0, 1, 0).Format(focusTime),
		"ChargeCategory": "Usage", "ChargeFrequency": "Usage-Based", "ChargeDescription": m.kind + " " + m.name + ": " + share,
		"ChargePeriodStart": m.from.Format(focusTime), "ChargePeriodEnd": m.until.Format(focusTime),
		"ConsumedQuantity": f.hours(), "ConsumedUnit": focusUnit, "PricingQuantity": f.hours(), "PricingUnit": focusUnit,
		"HostProviderName": in.Provider, "InvoiceIssuerName": in.Provider, "ProviderName": in.Provider,
		"PublisherName": in.Provider, "ServiceProviderName": in.Provider,
		"ResourceId": "gpuslice/" + m.path, "ResourceName": m.name, "ResourceType": m.kind,
		"ServiceCategory": "Compute", "ServiceSubcategory": "Other (Compute)", "ServiceName": "GPU",
		"SkuId": m.pool, "SkuPriceId": m.pool + "/device-hour", "Tags": "{}", "x_GpusliceShare": share,
	}
}

// allocate names in a row who held the row's part.
func (c *charge) allocate(row focusRow, k usage.Key) {
	name := cmp.Or(k.Namespace, other)
	tags, path := map[string]string{"namespace": name, "pool": k.Pool}, "pools/"+k.Pool
	if c.node != "" {
		tags, path = map[string]string{"namespace": name, "node": c.node, "device": c.name, "model": c.pool}, c.path
	}
	id := path + "/namespaces/" + name
	if key, value, ok := strings.Cut(k.Label, "="); ok {
		tags[key] = value
		id += "/" + k.Label
	} else if k.Rest {
		id += "/" + other
	}
	text, _ := json.Marshal(tags) // strings alone
	row["AllocatedResourceId"], row["AllocatedResourceName"], row["AllocatedTags"] = id, name, string(text)
}

// printFOCUS prints the rows of charges, and returns notes on gaps.
func (o *options) printFOCUS(out io.Writer, all []*charge) (notes []string, err error) {
	lines := [][]string{focusColumns}
	if o.output.NoHeaders {
		lines = nil
	}
	for _, m := range all {
		rows, note := o.charges.focusRows(m, o.used)
		if note != "" {
			notes = append(notes, note)
		}
		for _, row := range rows {
			var cells []string
			for _, c := range focusColumns {
				cells = append(cells, row[c])
			}
			lines = append(lines, cells)
		}
	}
	return notes, cli.PrintCSV(out, lines)
}
