package server

import (
	"context"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// unencodable is an operation that JSON cannot hold.
func unencodable() jsonpatch.Operation { return jsonpatch.NewOperation("add", "/x", math.NaN()) }

// padded is the sample review with spaces up to a size, which its JSON does not mind.
func padded(size int) string { return sample + strings.Repeat(" ", size-len(sample)) }

// TestLimits: fills the server with reviews that stay, and looks at the next
// one. The clock is the bubble's.
func TestLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		body   string
		places int
		spared string // a review that is still answered while the others wait
	}{
		"64 reviews at a time": {padded(2 << 10), maxReviews, ""},
		"4 reviews above 256 KiB at a time, and small ones beside them": {padded(largeReview + 1), maxLarge, sample},
		"4 MiB is still read": {padded(review.MaxBytes), maxLarge, sample},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stay := make(chan struct{})
				var block atomic.Bool
				block.Store(true)
				handler := serveHandler(t, func(context.Context, review.Request) (review.Answer, *review.Fault) {
					if block.Load() {
						<-stay
					}
					return review.Answer{}, nil
				})
				codes := make(chan int, tt.places)
				for range tt.places {
					go func() { codes <- post(handler, strings.NewReader(tt.body)).Code }()
				}
				synctest.Wait()
				block.Store(false)

				start := time.Now()
				w := post(handler, strings.NewReader(tt.body))
				if w.Code != http.StatusTooManyRequests || time.Since(start) != queueWait || w.Header().Get("Retry-After") == "" {
					t.Errorf("one more is answered %d after %s", w.Code, time.Since(start))
				}
				if tt.spared != "" {
					if w := post(handler, strings.NewReader(tt.spared)); w.Code != http.StatusOK {
						t.Errorf("a small review meanwhile is answered %d", w.Code)
					}
				}
				close(stay)
				for range tt.places {
					if code := <-codes; code != http.StatusOK {
						t.Errorf("a review that had its place is answered %d", code)
					}
				}
				if w := post(handler, strings.NewReader(tt.body)); w.Code != http.StatusOK {
					t.Errorf("after the others the review is answered %d", w.Code)
				}
			})
		})
	}
}

func TestLimitsQueue(t *testing.T) {
	t.Run("a review that gets a place within a second is answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			handler := serveHandler(t, func(context.Context, review.Request) (review.Answer, *review.Fault) {
				time.Sleep(queueWait / 2)
				return review.Answer{}, nil
			})
			codes := make(chan int, 2*maxReviews)
			for range 2 * maxReviews {
				go func() { codes <- post(handler, strings.NewReader(sample)).Code }()
			}
			for range 2 * maxReviews {
				if code := <-codes; code != http.StatusOK {
					t.Errorf("answered %d", code)
				}
			}
		})
	})
}

func TestLimitsSlowBodies(t *testing.T) {
	t.Run("are bounded without blocking reviews", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			handler := serveHandler(t, allowAll)
			stop := make(chan struct{})
			codes := make(chan int, maxArrived)
			for range maxArrived - 1 {
				go func() { codes <- post(handler, stalled(stop)).Code }()
			}
			synctest.Wait()
			if w := post(handler, strings.NewReader(sample)); w.Code != http.StatusOK {
				t.Errorf("a review beside slow bodies is answered %d", w.Code)
			}
			go func() { codes <- post(handler, stalled(stop)).Code }()
			synctest.Wait()
			if w := post(handler, strings.NewReader(sample)); w.Code != http.StatusTooManyRequests {
				t.Errorf("beyond %d requests one more is answered %d", maxArrived, w.Code)
			}
			close(stop)
			for range maxArrived {
				<-codes
			}
		})
	})
}

// stalled is a body of which nothing arrives until it breaks off.
type stalled <-chan struct{}

func (s stalled) Read([]byte) (int, error) {
	<-s
	return 0, context.Canceled
}

func TestTimeouts(t *testing.T) {
	// holds the queues, of which a large review meets two, against the timeouts
	// of the manifests: a caller that has left is answered nothing, and counts as a webhook that is down.
	t.Run("queues end before the caller gives up", func(t *testing.T) {
		text, err := deploy.Files.ReadFile("50-webhooks.yaml")
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`(?m)^  timeoutSeconds: (\d+)$`).FindAllSubmatch(text, -1)
		if len(found) == 0 {
			t.Fatal("the manifest has no timeouts")
		}
		for _, m := range found {
			seconds, err := strconv.Atoi(string(m[1]))
			if err != nil {
				t.Fatal(err)
			}
			if patience := time.Duration(seconds) * time.Second; 2*queueWait >= patience || writeTimeout <= patience {
				t.Errorf("a caller waits %s, the queues %s, and the answer is written within %s", patience, 2*queueWait, writeTimeout)
			}
		}
		if writeTimeout <= maxTimeout {
			t.Errorf("a handler may take %s, and its answer is written within %s", maxTimeout, writeTimeout)
		}
	})
}
