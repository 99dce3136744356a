package reference

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// Check compares a page with what is registered in r, or rewrites it if update is true.
func Check(t *testing.T, r *prometheus.Registry, head, page string, update bool) {
	t.Helper()
	found, err := Of(r)
	if err != nil {
		t.Fatal(err)
	}
	want := Page(head, found)
	if update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(have)); diff != "" {
		t.Errorf("(-registered +page, make manifests writes it)\n%s", diff)
	}
}
