#!/usr/bin/env bash
# One would expect: a query that answers NaN, such as a ratio without samples, is no value for an autoscaler, or an error.
# What happens: prometheus-adapter serves it as an external metric of the smallest number of 64 bits, in thousandths, which is below each
# target, so a HorizontalPodAutoscaler scales down to its minimum.
# sigs.k8s.io/prometheus-adapter v0.12.0, pkg/external-provider/metric_converter.go (convertSample).
# Go leaves the conversion of NaN to the processor: the figure is amd64's.
set -euo pipefail
[ "$(go env GOARCH)" = amd64 ] || { echo "needs amd64"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > go.mod <<'END'
module finding

go 1.26

require (
	k8s.io/api v0.37.2
	k8s.io/apimachinery v0.37.2
	k8s.io/client-go v0.37.2
	sigs.k8s.io/prometheus-adapter v0.12.0
)
END
cat > main.go <<'END'
package main

import (
	"fmt"
	"math"
	"os"

	"github.com/prometheus/common/model"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
	prometheus "sigs.k8s.io/prometheus-adapter/pkg/client"
	external "sigs.k8s.io/prometheus-adapter/pkg/external-provider"
)

func main() {
	same := true
	for _, c := range []struct {
		value float64
		want  string
	}{{0.5, "500m"}, {math.NaN(), "-9223372036854775808m"}} {
		list, err := external.NewMetricConverter().Convert(provider.ExternalMetricInfo{Metric: "use"},
			prometheus.QueryResult{Type: model.ValVector, Vector: &model.Vector{{Value: model.SampleValue(c.value)}}})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		got := list.Items[0].Value.String()
		fmt.Printf("the query answers %v: external metric %s\n", c.value, got)
		same = same && got == c.want
	}
	if !same {
		fmt.Println("CHANGED: the behaviour is another one")
		os.Exit(1)
	}
}
END
echo "sigs.k8s.io/prometheus-adapter v0.12.0"
CGO_ENABLED=0 GOFLAGS=-mod=mod go run -trimpath . 2> err || { cat err; exit 1; }
