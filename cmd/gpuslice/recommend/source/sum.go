package source

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/url"
	"time"
)

const (
	sumStep = time.Minute
	maxSums = 64 << 20 // bytes of one answer
)

var (
	errSlowSum = fmt.Errorf("no answer to the query of a day within %s", queryTimeout)
	errSums    = fmt.Errorf("an answer of more than %d MiB", maxSums>>20)
)

// Sum calls add with the labels of each series of an expression, and with the sum of its values at each minute from a time until before
// another: for each day apart, or for less where a day takes too many samples. A sum that is no amount, as after a division by zero, is
// left out. What was added before an error does not count.
func (p *Prometheus) Sum(ctx context.Context, expression string, from, until time.Time, add func(labels map[string]string, sum float64)) error {
	return p.each(ctx, ranges{from, until, sumStep, errSlowSum, func(from, until time.Time) url.Values {
		// A subquery has values at whole minutes. Prometheus 2 takes one at the beginning of its time and 3 does not: there is none.
		at := stamp(until.Add(-time.Second))
		query := fmt.Sprintf("sum_over_time((%s)[%ds:%ds])", expression, int(until.Sub(from).Seconds()), int(sumStep.Seconds()))
		return url.Values{"query": {query}, "start": {at}, "end": {at}}
	}, func(answer io.Reader) error {
		return readRangeQuery(&budget{answer, maxSums, errSums}, func(labels map[string]string) (take, error) {
			return func(_, sum float64) {
				if sum >= 0 && !math.IsInf(sum, 0) {
					add(labels, sum)
				}
			}, nil
		})
	}})
}
