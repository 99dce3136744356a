package apiserver

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// reviews is how many reviews the webhook has answered, by its own metric.
func reviews(t *testing.T, probes string) (sum float64) {
	t.Helper()
	resp, err := http.Get("http://" + probes + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		line := lines.Text()
		if !strings.HasPrefix(line, "gpuslice_admission_duration_seconds_count") {
			continue
		}
		n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}
