package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/price"
	"github.com/gpuslice/gpuslice/webhook/leader/usage"
)

// invoice is the cost of the devices of pools: the file of --charges.
type invoice struct {
	Provider string          `json:"provider"` // who sells the devices
	Account  string          `json:"account"`  // that is billed
	Currency string          `json:"currency"` // ISO 4217
	Prices   string          `json:"prices"`   // openCostPrices: of nodes that Devices does not have
	Devices  []invoiceDevice `json:"devices"`
}

// openCostPrices is the value of prices for those that OpenCost exports.
const openCostPrices = "opencost"

// invoiceDevice is devices of one price: those of a node, or all of a model.
type invoiceDevice struct {
	Pool  string  `json:"pool"` // a pool, or the beginning of its name, as --price takes it: so the model of a device, too
	Node  string  `json:"node"` // of the devices; usage by pool does not know it
	Count int     `json:"count"`
	Price float64 `json:"price"` // of a device-hour
}

// Bounds of an invoice.
const (
	maxInvoice  = 1 << 20 // bytes
	maxDevices  = 1 << 14 // of one line
	maxAll      = 1 << 15 // devices of all lines: their units times the seconds of a month leave room in an int64
	maxHourCost = 1e4
	maxLines    = 1 << 12
)

func readInvoice(path string) (*invoice, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--charges: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxInvoice+1))
	if err != nil {
		return nil, fmt.Errorf("--charges: read %s: %w", path, err)
	}
	in, err := parseInvoice(text)
	if err != nil {
		return nil, fmt.Errorf("--charges %s: %w", path, err)
	}
	return in, nil
}

func parseInvoice(text []byte) (*invoice, error) {
	if len(text) > maxInvoice {
		return nil, fmt.Errorf("more than %d bytes", maxInvoice)
	}
	in := &invoice{}
	if err := yaml.UnmarshalStrict(text, in); err != nil {
		return nil, err
	}
	switch {
	case in.Provider == "" || in.Account == "":
		return nil, errors.New("provider and account are required: who sells the devices, and which account is billed")
	case !currencyCode.MatchString(in.Currency):
		return nil, fmt.Errorf("currency %q: accepted: a code of ISO 4217, such as USD", in.Currency)
	case in.Prices != "" && in.Prices != openCostPrices:
		return nil, fmt.Errorf("prices %q: accepted: %s, for the prices that OpenCost has of nodes", in.Prices, openCostPrices)
	case len(in.Devices) == 0 && in.Prices == "" || len(in.Devices) > maxLines:
		return nil, fmt.Errorf("%d devices: accepted: 1 to %d", len(in.Devices), maxLines)
	}
	all := 0
	for i, d := range in.Devices {
		if d.Pool == "" && d.Node == "" || d.Pool != "" && !validPattern(d.Pool) ||
			len(d.Node) > maxPattern || d.Count < 1 || d.Count > maxDevices || !(d.Price >= 0 && d.Price <= maxHourCost) {
			return nil, fmt.Errorf("devices[%d]: accepted: {pool: a100, count: 8, price: 2.40} or, for --by device, {node: gpu-1, count: 8, price: 2.40}; count up to %d, price up to %g",
				i, maxDevices, maxHourCost)
		}
		if all += d.Count; all > maxAll {
			return nil, fmt.Errorf("devices: more than %d in all lines, the most that is read", maxAll)
		}
	}
	return in, nil
}

// checkPools reports fields that are of use for rows by device alone.
func (in *invoice) checkPools() error {
	if in.Prices != "" {
		return fmt.Errorf("prices: %s has prices of nodes: add --by device", in.Prices)
	}
	for i, d := range in.Devices {
		if d.Pool == "" {
			return fmt.Errorf("devices[%d]: usage is recorded by pool: name one, or add --by device", i)
		}
	}
	return nil
}

// checkDevices reports what pools add up, and devices cannot: which of two lines has a device.
func (in *invoice) checkDevices() error {
	first := map[[2]string]int{}
	for i, d := range in.Devices {
		key := [2]string{d.Node, strings.TrimPrefix(strings.ToLower(cmp.Or(d.Pool, price.Any)), "nvidia-")}
		if at, twice := first[key]; twice {
			return fmt.Errorf("devices[%d] has the node and pool of devices[%d]: --by device takes one line of each: add up count, with the mean price, or name nodes", i, at)
		}
		first[key] = i
	}
	return nil
}

// micros is money in millionths of a currency's unit.
type micros int64

const (
	unitOfCurrency micros = 1_000_000
	cent                  = unitOfCurrency / 100
)

// String has six digits, so that rows add up.
func (m micros) String() string { return fmt.Sprintf("%d.%06d", m/unitOfCurrency, m%unitOfCurrency) }

// bill is the cost of a pool's devices over a time, and how many device units times seconds those are.
type bill struct {
	cost     micros // whole cents
	capacity int64
}

// chargeOf is the pool of the invoice that stands for one in which something was held. ok is false if there is none.
func (in *invoice) chargeOf(pool string) (charge string, ok bool) {
	names := price.List{}
	for _, d := range in.Devices {
		names[d.Pool] = d.Price
	}
	_, charge = priceOf(names, pool)
	return charge, charge != ""
}

// of is the cost of the devices of a pool of the invoice.
func (in *invoice) of(charge string, from, until time.Time) (b bill) {
	seconds, cost := int64(until.Sub(from)/time.Second), 0.0
	for _, d := range in.Devices {
		if d.Pool == charge {
			cost += float64(d.Count) * d.Price * float64(seconds) / 3600
			b.capacity += int64(d.Count) * seconds * usage.DeviceUnits
		}
	}
	b.cost = inCents(cost)
	return b
}

// inCents is an amount of money, rounded to the cent.
func inCents(cost float64) micros { return micros(math.Round(cost*100)) * cent }

// part is the share of a cost, rounded down.
func part(cost micros, amount, of int64) micros {
	if of == 0 {
		return 0
	}
	n := new(big.Int).Mul(big.NewInt(int64(cost)), big.NewInt(amount))
	return micros(n.Quo(n, big.NewInt(of)).Int64())
}

// divided is a bill in parts.
type divided struct {
	held                   []micros
	idle, unread, rounding micros
	of                     int64 // the total of the parts: the capacity, or the holdings if those are more
	idleAmount             int64
	unreadAmount           int64
}

// divide divides a bill among holdings. unread is the most that may have been held beside them: it counts up to the
// free part. The parts add up to the cost.
func (b bill) divide(held []int64, unread int64) (d divided) {
	var sum int64
	for _, h := range held {
		sum += h
	}
	d.of = max(b.capacity, sum)
	d.unreadAmount = min(max(unread, 0), d.of-sum)
	d.idleAmount = d.of - sum - d.unreadAmount
	d.rounding = b.cost
	for _, h := range held {
		d.held = append(d.held, part(b.cost, h, d.of))
		d.rounding -= d.held[len(d.held)-1]
	}
	d.idle, d.unread = part(b.cost, d.idleAmount, d.of), part(b.cost, d.unreadAmount, d.of)
	if d.of == 0 {
		d.idle = b.cost
	}
	d.rounding -= d.idle + d.unread
	return d
}
