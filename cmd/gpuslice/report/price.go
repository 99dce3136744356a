package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// prices are those of a device-hour, by pool; "*" is any other. The unit of money is the user's.
type prices map[string]float64

// anyPool stands for the pools without a price of their own.
const anyPool = "*"

func parsePrices(texts []string) (prices, error) {
	all := prices{}
	for _, text := range texts {
		pool, amount, ok := strings.Cut(text, "=")
		price, err := strconv.ParseFloat(amount, 64)
		switch _, twice := all[pool]; {
		case !ok || pool == "" || err != nil || price < 0 || math.IsInf(price, 0) || math.IsNaN(price):
			return nil, fmt.Errorf("--price %q: accepted: POOL=PRICE, such as a100=2.40", text)
		case twice:
			return nil, fmt.Errorf("--price: pool %s has two prices", pool)
		}
		all[pool] = price
	}
	return all, nil
}

// of is the price in a pool; false: it has none.
func (p prices) of(pool string) (float64, bool) {
	if price, ok := p[pool]; ok && pool != anyPool {
		return price, true
	}
	price, ok := p[anyPool]
	return price, ok
}
