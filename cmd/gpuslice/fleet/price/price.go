// Package price reads the prices of a device-hour that --price sets by name, and finds the one for a device or pool.
package price

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Any is the name of the price for everything without a price of its own.
const Any = "*"

// List has prices of a device-hour by name. The unit of money is the user's.
type List map[string]float64

// Parse reads texts such as "a100=2.40". An error shows the accepted form; valid reports whether a name can stand for
// anything.
func Parse(texts []string, accepted string, valid func(name string) bool) (List, error) {
	all := List{}
	for _, text := range texts {
		name, amount, ok := strings.Cut(text, "=")
		price, err := strconv.ParseFloat(amount, 64)
		if !ok || name == "" || !valid(name) || err != nil || !(price >= 0) || math.IsInf(price, 0) {
			return nil, fmt.Errorf("--price %q: accepted: %s", text, accepted)
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("--price: %s has two prices", name)
		}
		all[name] = price
	}
	return all, nil
}

// Of is a price and its name: the exact name, else the longest one that stands for it, else Any. The name is "" if there is no price.
func (l List) Of(exact string, standsFor func(name string) bool) (price float64, name string) {
	if price, ok := l[exact]; ok {
		return price, exact
	}
	for n, its := range l {
		if n != Any && standsFor(n) && (len(n) > len(name) || len(n) == len(name) && n < name) {
			price, name = its, n
		}
	}
	if its, ok := l[Any]; ok && name == "" {
		return its, Any
	}
	return price, name
}
