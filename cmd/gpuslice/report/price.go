package report

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
)

// prices are those of a device-hour, by pool, by the beginning of pools' names ("a100", "nvidia-a100-sxm4-80gb") or by pattern
// ("a100*"); "*" is any other. The unit of money is the user's.
type prices map[string]float64

// anyPool stands for the pools without a price of their own.
const anyPool = "*"

// maxPattern bounds what is matched against each pool.
const maxPattern = 253

func parsePrices(texts []string) (prices, error) {
	all := prices{}
	for _, text := range texts {
		pool, amount, ok := strings.Cut(text, "=")
		price, err := strconv.ParseFloat(amount, 64)
		switch _, twice := all[pool]; {
		case !ok || pool == "" || len(pool) > maxPattern || badPattern(pool) || err != nil || price < 0 || math.IsInf(price, 0) || math.IsNaN(price):
			return nil, fmt.Errorf("--price %q: accepted: POOL=PRICE, such as a100=2.40, nvidia-l4=0.70 or 'h100*=4.10'", text)
		case twice:
			return nil, fmt.Errorf("--price: pool %s has two prices", pool)
		}
		all[pool] = price
	}
	return all, nil
}

func badPattern(pool string) bool {
	_, err := path.Match(pool, "")
	return err != nil
}

// of is the price in a pool, and what names it: its own name, else the longest beginning or pattern; "": it has none.
func (p prices) of(pool string) (price float64, by string) {
	if price, ok := p[pool]; ok {
		return price, pool
	}
	for name, its := range p {
		if name != anyPool && matches(name, pool) && (len(name) > len(by) || len(name) == len(by) && name < by) {
			price, by = its, name
		}
	}
	if its, ok := p[anyPool]; ok && by == "" {
		return its, anyPool
	}
	return price, by
}

// matches reports whether a name stands for the pool: a pattern, or words that the pool's name begins with. The names of pools that
// labels make begin with the device's, without "nvidia-".
func matches(name, pool string) bool {
	name = strings.ToLower(name)
	for _, n := range []string{name, strings.TrimPrefix(name, "nvidia-")} {
		if ok, err := path.Match(n, pool); ok && err == nil || n != "" && strings.HasPrefix(pool, strings.TrimSuffix(n, "-")+"-") {
			return true
		}
	}
	return false
}
