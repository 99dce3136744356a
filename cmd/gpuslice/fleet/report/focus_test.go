package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/webhook/leader/usage"
)

// TestDivideAddsUp: in 100,000 random months, the rows of a pool add up to what its devices cost, no row is negative, and who held more
// pays no less.
func TestDivideAddsUp(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for n := range 100_000 {
		seconds := int64(28+random.IntN(4)) * 86400
		b := bill{cost: micros(random.Int64N(1e9)) * cent, capacity: random.Int64N(100) * seconds * usage.DeviceUnits}
		var held []int64
		for range random.IntN(12) {
			held = append(held, random.Int64N(1+10*seconds*usage.DeviceUnits/(1+random.Int64N(50))))
		}
		d := b.divide(held, random.Int64N(1+2*seconds*usage.DeviceUnits)-1)
		sum := d.idle + d.unread + d.rounding
		for i, m := range d.held {
			sum += m
			if m < 0 || i > 0 && held[i] > held[i-1] && m < d.held[i-1] {
				t.Fatalf("month %d: %d held pays %v, %d held %v", n, held[i-1], d.held[i-1], held[i], m)
			}
		}
		if sum != b.cost || d.idle < 0 || d.unread < 0 || d.rounding < 0 || d.rounding > micros(len(held)+2) {
			t.Fatalf("month %d: rows are %v in all, cost %v: %+v", n, sum, b.cost, d)
		}
	}
}

const charges = `provider: Example Cloud
account: "1234"
currency: EUR
devices:
- {pool: a100, node: gpu-1, count: 2, price: 2.40}
- {pool: a100, node: gpu-2, count: 1, price: 2.00}
- {pool: "*", count: 1, price: 0.70}
`

// focusOf is the table of random days, by column.
func focusOf(t *testing.T, used bool, seed uint64) (rows []focusRow, notes []string) {
	t.Helper()
	in, err := parseInvoice([]byte(charges))
	if err != nil {
		t.Fatal(err)
	}
	span := period{time.Date(2026, 9, 20, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 5, 0, 0, 0, 0, time.UTC)}
	var b strings.Builder
	o := &options{charges: in, used: used, output: cli.Output{Format: focusFormat}}
	all, notes := o.charges.charges(span, randomDays(rand.New(rand.NewPCG(seed, 1)), span))
	if _, err := o.printFOCUS(&b, all); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(lines[0], focusColumns) {
		t.Fatalf("columns %q", lines[0])
	}
	for _, line := range lines[1:] {
		row := focusRow{}
		for i, c := range focusColumns {
			row[c] = line[i]
		}
		rows = append(rows, row)
	}
	return rows, notes
}

// randomDays are days of which some are missing.
func randomDays(random *rand.Rand, span period) (days []*usage.Day) {
	for at := span.from; at.Before(span.until); at = at.Add(day) {
		if random.IntN(10) == 0 {
			continue
		}
		d := &usage.Day{From: usage.SecondOf(at), Until: usage.SecondOf(at.Add(day))}
		for i, pool := range []string{"a100", "l4", ""} {
			held := usage.Amount{Memory: random.Int64N(1e9), Devices: random.Int64N(86400 * usage.DeviceUnits / 2)}
			d.Lines = append(d.Lines, usage.Line{Key: usage.Key{Namespace: fmt.Sprint("team-", i), Pool: pool, Label: "team=x"}, Held: held,
				Used: random.Int64N(1 + held.Memory/2), Read: held.Memory/2 + random.Int64N(1+held.Memory/2),
				Unsure: usage.Amount{Devices: random.Int64N(1e9)}})
		}
		days = append(days, d)
	}
	return days
}

// TestFOCUSRows: rows are valid, and those of a month of a pool add up to the invoice, to the cent.
func TestFOCUSRows(t *testing.T) {
	for seed := range uint64(20) {
		for _, used := range []bool{false, true} {
			rows, _ := focusOf(t, used, seed)
			sums, ratios := map[string]float64{}, map[string]float64{}
			for _, row := range rows {
				for _, problem := range row.problems() {
					t.Errorf("%s %s: %s", row["ResourceId"], row["x_GpusliceShare"], problem)
				}
				at := row["ResourceId"] + " " + row["ChargePeriodStart"]
				cost, _ := strconv.ParseFloat(row["BilledCost"], 64)
				sums[at] += cost
				ratios[at] += row.ratio()
			}
			if got := sums["gpuslice/pools/a100 2026-10-01T00:00:00Z"]; math.Abs(got-31*24*(2*2.40+2.00)) > 1e-6 {
				t.Errorf("October of the pool costs %.6f", got)
			}
			if got := sums["gpuslice/pools/* 2026-09-20T00:00:00Z"]; math.Abs(got-11*24*0.70) > 1e-6 {
				t.Errorf("the end of September of the other pools costs %.6f", got)
			}
			for at, ratio := range ratios {
				if math.Abs(ratio-1) > 1e-9 {
					t.Errorf("%s: ratios add up to %v", at, ratio)
				}
			}
		}
	}
}

func (r focusRow) ratio() float64 {
	var details struct {
		Elements []struct{ AllocatedRatio float64 }
	}
	if err := json.Unmarshal([]byte(r["AllocatedMethodDetails"]), &details); err != nil || len(details.Elements) != 1 {
		return math.NaN()
	}
	return details.Elements[0].AllocatedRatio
}

// problems are where a row breaks FOCUS 1.3: mandatory columns that may not be null, types, and the rules of split cost allocation.
func (r focusRow) problems() (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, c := range []string{"BilledCost", "BillingAccountId", "BillingCurrency", "BillingPeriodEnd",
		"BillingPeriodStart", "ChargeCategory", "ChargePeriodEnd",
		"ChargePeriodStart", "ContractedCost", "EffectiveCost", "HostProviderName", "InvoiceIssuerName", "ListCost",
		"PricingQuantity", "PricingUnit", "ProviderName",
		"PublisherName", "ServiceCategory", "ServiceName", "ServiceProviderName",
		"ServiceSubcategory", "AllocatedMethodId", "AllocatedMethodDetails"} {
		if r[c] == "" {
			add("%s is null", c)
		}
	}
	for _, c := range []string{"BilledCost", "ContractedCost", "EffectiveCost", "ListCost", "PricingQuantity", "ConsumedQuantity"} {
		if n, err := strconv.ParseFloat(r[c], 64); err != nil || n < 0 {
			add("%s is %q", c, r[c])
		}
	}
	times := map[string]time.Time{}
	for _, c := range []string{"BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd"} {
		at, err := time.Parse(time.RFC3339, r[c])
		if err != nil || !strings.HasSuffix(r[c], "Z") {
			add("%s is %q", c, r[c])
		}
		times[c] = at
	}
	if !times["ChargePeriodStart"].Before(times["ChargePeriodEnd"]) || times["ChargePeriodStart"].Before(times["BillingPeriodStart"]) ||
		times["ChargePeriodEnd"].After(times["BillingPeriodEnd"]) {
		add("the charge period %s to %s is not within the billing period", r["ChargePeriodStart"], r["ChargePeriodEnd"])
	}
	if r["ChargeCategory"] != "Usage" || r["ChargeClass"] != "" || r["ChargeFrequency"] != "Usage-Based" ||
		r["ServiceCategory"] != "Compute" || !currencyCode.MatchString(r["BillingCurrency"]) {
		add("a value that is not one of the column's")
	}
	allocated := slices.Contains([]string{shareHeld, shareUsed, shareUnused, shareUnknown}, r["x_GpusliceShare"])
	for _, c := range []string{"AllocatedResourceId", "AllocatedResourceName", "AllocatedTags"} {
		if (r[c] != "") != allocated {
			add("%s is %q in a row of share %s", c, r[c], r["x_GpusliceShare"])
		}
	}
	for _, c := range []string{"Tags", "AllocatedTags"} {
		if text := r[c]; text != "" && json.Unmarshal([]byte(text), &map[string]string{}) != nil {
			add("%s is %q", c, text)
		}
	}
	for c := range r {
		if !slices.Contains(focusColumns, c) {
			add("%s is no column of FOCUS", c)
		}
	}
	return all
}

func TestParseInvoice(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML":            ":",
		"a mistyped field":   strings.Replace(charges, "count", "cuont", 1),
		"no provider":        strings.Replace(charges, "provider: Example Cloud", "provider: ''", 1),
		"no currency":        strings.Replace(charges, "EUR", "euros", 1),
		"a negative price":   strings.Replace(charges, "2.40", "-1", 1),
		"no number":          strings.Replace(charges, "2.40", ".nan", 1),
		"no devices":         "provider: a\naccount: b\ncurrency: EUR\n",
		"too many of a kind": strings.Replace(charges, "count: 2", "count: 1000000", 1),
		"too many in all":    charges + strings.Repeat("- {pool: a100, count: 16384, price: 1}\n", 8),
		"too long":           charges + strings.Repeat("#", maxInvoice),
	} {
		if in, err := parseInvoice([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, in)
		}
	}
}

func FuzzParseInvoice(f *testing.F) {
	f.Add([]byte(charges))
	f.Fuzz(func(t *testing.T, text []byte) {
		in, err := parseInvoice(text)
		if err != nil {
			return
		}
		from := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
		charge, ok := in.chargeOf("a100")
		if b := in.of(charge, from, from.AddDate(0, 1, 0)); b.cost < 0 || b.cost%cent != 0 || b.capacity < 0 || (b.capacity > 0) != ok {
			t.Errorf("%+v", b)
		}
	})
}

// TestMoreHeldThanCharged: what was held pays all, and a note names the pool.
func TestMoreHeldThanCharged(t *testing.T) {
	d := bill{cost: 100 * unitOfCurrency, capacity: 10}.divide([]int64{10, 30}, 5)
	if d.held[0] != 25*unitOfCurrency || d.held[1] != 75*unitOfCurrency || d.idle != 0 || d.unread != 0 || d.of != 40 {
		t.Errorf("%+v", d)
	}
	in, _ := parseInvoice([]byte("provider: a\naccount: b\ncurrency: EUR\ndevices: [{pool: a100, count: 1, price: 1}]"))
	from := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	held := usage.Amount{Devices: 2 * 86400 * usage.DeviceUnits}
	d1 := &usage.Day{From: usage.SecondOf(from), Until: usage.SecondOf(from.Add(day)), Lines: []usage.Line{
		{Key: usage.Key{Namespace: "a", Pool: "a100-mps"}, Held: held},
		{Key: usage.Key{Namespace: "a", Pool: "a100-exclusive"}, Held: held}, {Key: usage.Key{Pool: "l4"}, Held: held}}}
	var out strings.Builder
	o := &options{charges: in}
	all, notes := o.charges.charges(period{from, from.Add(day)}, []*usage.Day{d1})
	more, err := o.printFOCUS(&out, all)
	if notes = append(notes, more...); err != nil || !slices.Equal(notes, []string{"no charge: pool l4 has no devices in --charges",
		"pool a100: more was held in 2026-10 than the devices of --charges: the cost is divided by what was held"}) {
		t.Errorf("notes %q, %v", notes, err)
	}
	if n := strings.Count(out.String(), "12.000000"); n != 2*4 { // each of two pools pays half in four columns
		t.Errorf("%d costs of 12 in\n%s", n, out.String())
	}
}

// TestNothingHeld: a pool of the invoice in which nothing was held is idle where somebody counted, and unread where nobody did.
func TestNothingHeld(t *testing.T) {
	in, _ := parseInvoice([]byte("provider: a\naccount: b\ncurrency: EUR\ndevices: [{pool: a100, count: 2, price: 1}]"))
	from := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	counted := &usage.Day{From: usage.SecondOf(from), Until: usage.SecondOf(from.Add(day))}
	all, _ := in.charges(period{from, from.Add(4 * day)}, []*usage.Day{counted})
	rows, note := in.focusRows(all[0], false)
	got := map[string]string{}
	for _, r := range rows {
		got[r["x_GpusliceShare"]] = r["BilledCost"]
	}
	if len(all) != 1 || len(rows) != 3 || note != "" || got[shareIdle] != "48.000000" ||
		got[shareUnread] != "144.000000" || got[shareRounding] != "0.000000" {
		t.Errorf("%d charges, %v, %q", len(all), got, note)
	}
}
