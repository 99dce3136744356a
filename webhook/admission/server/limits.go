package server

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// Bounds on input, beside review.MaxBytes.
const (
	headReview   = 16 << 10  // bytes of a body that is too large: the names of the object come before it
	maxDiscarded = 64 << 20  // bytes of such a body that are taken off the wire
	largeReview  = 256 << 10 // bytes; above it a review counts as large
	prealloc     = 64 << 10  // bytes reserved on the word of Content-Length alone
	// maxLarge is how many large reviews are read and decided at a time. The worst of 4 MiB hold some 65 MiB each: of eight
	// at once a replica reached 575 MiB, where its limit is 512 MiB and the collector works without end from `GOMEMLIMIT` on.
	maxLarge    = 4
	maxReviews  = 64  // reviews at a time that are only computed
	maxWaiting  = 256 // reviews at a time that may wait for a quota
	maxArrived  = 512 // requests in any phase, slow bodies included
	queueWait   = time.Second
	bodyTimeout = 10 * time.Second
	// writeTimeout bounds the TLS handshake. Of a request it counts from the end of the headers, and so covers reading, queueing
	// and deciding as well.
	writeTimeout = 40 * time.Second
	// idleTimeout must be longer than the 90 s after which the API server drops an idle connection: with equal
	// values 4.4 % of spaced calls failed, with a longer one 0 of 16,000. Headers have as long: the API server opens connections that
	// it does not use at once, and unfinished headers hold little more memory than an idle connection.
	idleTimeout    = 150 * time.Second
	maxHeaderBytes = 8 << 10
)

// Limits are the queues that all endpoints of a server share.
type Limits struct {
	arrived, reviews, large gate
}

// NewLimits returns empty queues.
func NewLimits() *Limits {
	return &Limits{arrived: make(gate, maxArrived), reviews: make(gate, maxReviews), large: make(gate, maxLarge)}
}

// Waiting returns queues of their own for reviews that wait for others, so that these do not delay reviews
// that are answered at once. Large reviews are counted together.
func (l *Limits) Waiting() *Limits {
	return &Limits{arrived: make(gate, maxArrived), reviews: make(gate, maxWaiting), large: l.large}
}

// checkHead returns a Fault for a request that is no review by its method and headers.
func checkHead(r *http.Request) *review.Fault {
	if r.Method != http.MethodPost {
		return review.Faultf(http.StatusMethodNotAllowed, "method %s: only POST is answered here", r.Method)
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return review.Faultf(http.StatusUnsupportedMediaType, "only application/json is read here")
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return review.Faultf(http.StatusUnsupportedMediaType, "encoded bodies are not read here")
	}
	return nil
}

// tooLarge is the Fault of a body whose beginning was read. The rest is taken off the wire, up to a bound, so that the
// caller has sent all before it is answered.
func tooLarge(rest io.Reader) *review.Fault {
	_, _ = io.Copy(io.Discard, io.LimitReader(rest, maxDiscarded))
	return review.Faultf(http.StatusRequestEntityTooLarge, "the review is larger than %d bytes", review.MaxBytes)
}

func busy() *review.Fault {
	return review.Faultf(http.StatusTooManyRequests, "too many reviews at once, try again")
}

// read returns the body, or the beginning of one that is too large. A large one takes a place among the few until done is
// called; done is never nil.
func (l *Limits) read(r *http.Request) (body []byte, done func(), fault *review.Fault) {
	done = func() {}
	if r.ContentLength > review.MaxBytes {
		head, err := io.ReadAll(io.LimitReader(r.Body, headReview))
		if err != nil {
			return nil, done, unread(err)
		}
		return head, done, tooLarge(r.Body)
	}
	limited := io.LimitReader(r.Body, review.MaxBytes+1)
	buffer := bytes.NewBuffer(make([]byte, 0, max(bytes.MinRead, min(r.ContentLength, prealloc)+bytes.MinRead)))
	if _, err := buffer.ReadFrom(io.LimitReader(limited, largeReview+1)); err != nil {
		return nil, done, unread(err)
	}
	if buffer.Len() <= largeReview {
		return buffer.Bytes(), done, nil
	}
	if !l.large.enter(r.Context(), queueWait) {
		return nil, done, busy()
	}
	done = l.large.leave
	if _, err := buffer.ReadFrom(limited); err != nil {
		return nil, done, unread(err)
	}
	if buffer.Len() > review.MaxBytes {
		return buffer.Bytes()[:headReview], done, tooLarge(r.Body)
	}
	return buffer.Bytes(), done, nil
}

func unread(error) *review.Fault {
	return review.Faultf(http.StatusBadRequest, "the body could not be read")
}
