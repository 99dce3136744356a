package audit

import (
	"regexp"
	"testing"

	"github.com/gpuslice/gpuslice/deploy"
)

// TestRequestingIsReviewed holds the places of requesting to the match conditions by which the API server asks the webhook.
func TestRequestingIsReviewed(t *testing.T) {
	t.Parallel()
	manifest, err := deploy.Files.ReadFile("50-webhooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for place, condition := range map[string]string{
		"/metadata/labels/gpuslice.dev~1memory":                                            `labels[^\n]*exists\(key, key\.startsWith\('gpuslice\.dev/'\)`,
		"/spec/containers/0/resources/limits/nvidia.com~1gpu":                              `limits[^\n]*exists\(name, name\.startsWith\('nvidia\.com/'\)`,
		"/spec/initContainers/12/resources/requests/nvidia.com~1gpu":                       `requests[^\n]*exists\(name, name\.startsWith\('nvidia\.com/'\)`,
		"/spec/containers/3/resources/limits/deviceclass.resource.kubernetes.io~1gpu.test": `limits[^\n]*name\.startsWith\('deviceclass\.resource\.kubernetes\.io/'\)`,
	} {
		if !requesting.MatchString(place) {
			t.Errorf("%s is not found", place)
		}
		if !regexp.MustCompile(condition).Match(manifest) {
			t.Errorf("%s is found, and no match condition is %s", place, condition)
		}
	}
}
