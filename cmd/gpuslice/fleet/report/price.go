package report

import (
	"path"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/price"
)

// maxPattern bounds a pattern, which is matched against each pool.
const maxPattern = 253

// parsePrices reads prices by pool, by the beginning of pools' names ("a100", "nvidia-a100-sxm4-80gb") or by pattern ("a100*").
func parsePrices(texts []string) (price.List, error) {
	return price.Parse(texts, "POOL=PRICE, such as a100=2.40, nvidia-l4=0.70 or 'h100*=4.10'", validPattern)
}

func validPattern(pool string) bool {
	_, err := path.Match(pool, "")
	return err == nil && pool != "" && len(pool) <= maxPattern
}

// priceOf is the price in a pool, and the name that it has in the list; "": there is none.
func priceOf(all price.List, pool string) (amount float64, name string) {
	return all.Of(pool, func(name string) bool { return matches(name, pool) })
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
