package scrape

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestScrapeBounds: whatever a pod answers, with whatever status, Client reads no more of it than its bounds.
func TestScrapeBounds(t *testing.T) {
	t.Parallel()
	const served, most = 64 << 20, 8 << 20 // what buffers between the two hold is read too
	for _, status := range []int{http.StatusOK, http.StatusFound, http.StatusForbidden,
		http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			read := make(chan int, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				sent, chunk := 0, []byte(strings.Repeat("x", 1<<20))
				for sent < served {
					n, err := w.Write(chunk)
					if sent += n; err != nil {
						break
					}
				}
				read <- sent
			}))
			t.Cleanup(server.Close)
			client, err := Connect(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.scrape(t.Context(), "team-a", "train", 9400, maxOfGuard); err == nil {
				t.Error("no error")
			}
			if sent := <-read; sent > most {
				t.Errorf("%d MiB were read", sent>>20)
			}
		})
	}
}
