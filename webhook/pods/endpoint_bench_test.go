package pods

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/metrics"
)

// BenchmarkEndpoint is one review in process, from its headers to its answer: a pod that is rewritten, and one that
// asks for nothing.
func BenchmarkEndpoint(b *testing.B) {
	for name, object := range map[string]string{
		string(policies.Mutated): asking("4Gi"), string(policies.Unchanged): `{"spec":{"containers":[{"name":"a","image":"x"}]}}`,
	} {
		b.Run(name, func(b *testing.B) {
			endpoint := endpoint(governed(b, "strategies: [time-slicing]"), metrics.New("bench"))
			body := strings.Replace(sample, `"object":{`, `"object":`+object+`,"x":{`, 1)
			b.ReportAllocs()
			for b.Loop() {
				if w := post(endpoint, strings.NewReader(body)); w.Code != http.StatusOK {
					b.Fatalf("answered %d %s", w.Code, w.Body)
				}
			}
		})
	}
}
