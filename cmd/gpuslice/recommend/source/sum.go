package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	sumStep = time.Minute
	maxSums = 64 << 20 // bytes of one answer
)

// Sum calls add with the labels of each series of an expression, and with the sum of its values at each minute from a time until before
// another: for each day apart, or for less where a day takes too many samples.
func (p *Prometheus) Sum(ctx context.Context, expression string, from, until time.Time, add func(labels map[string]string, sum float64)) error {
	for chunk := queryChunk; from.Before(until); {
		end := from.Add(chunk)
		if end.After(until) {
			end = until
		}
		all, err := p.sum(ctx, expression, from, end)
		if err != nil && chunk > time.Hour && strings.Contains(err.Error(), tooManySamples) {
			chunk = (chunk / 2).Truncate(sumStep)
			continue
		}
		if err != nil {
			return fmt.Errorf("query Prometheus (%s): %w", p.name, err)
		}
		for _, s := range all {
			add(s.labels, s.value)
		}
		from = end
	}
	return nil
}

// summed is the sum of a series.
type summed struct {
	labels map[string]string
	value  float64
}

func (p *Prometheus) sum(ctx context.Context, expression string, from, end time.Time) (all []summed, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, queryTimeout, fmt.Errorf("no answer to the query of a day within %s", queryTimeout))
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	// A subquery has values at whole minutes. Prometheus 2 takes one at the beginning of its time and 3 does not: there is none.
	at := stamp(end.Add(-time.Second))
	query := fmt.Sprintf("sum_over_time((%s)[%ds:%ds])", expression, int(end.Sub(from).Seconds()), int(sumStep.Seconds()))
	body, err := p.get(ctx, url.Values{"query": {query}, "start": {at}, "end": {at}, "step": {strconv.Itoa(int(sumStep.Seconds()))}})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(&cancelable{ctx, body}, maxSums+1))
	if err != nil {
		return nil, err
	}
	return parseSums(text)
}

// parseSums reads the answer to a range query of one step. A value that is no amount, as after a division by zero, is left out.
func parseSums(text []byte) (all []summed, err error) {
	if len(text) > maxSums {
		return nil, fmt.Errorf("an answer of more than %d MiB", maxSums>>20)
	}
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("prometheus answered %.40q: %.300s", answer.Status, answer.Error)
	}
	for _, series := range answer.Data.Result {
		for _, v := range series.Values {
			text, ok := v[1].(string)
			value, err := strconv.ParseFloat(text, 64)
			if !ok || err != nil {
				return nil, errors.New("read the answer: a sample is not [seconds, \"value\"]")
			}
			if value >= 0 && !math.IsInf(value, 0) {
				all = append(all, summed{series.Metric, value})
			}
		}
	}
	return all, nil
}
