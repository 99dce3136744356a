package bounded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxPage is how many bytes a page may have. Once decoded it takes up to 25 times as much: a volume of 11 bytes is a struct of 270. etcd
// takes objects of 1.5 MiB, unless it is configured otherwise.
const maxPage = 4 << 20

// decoding bounds all pages in memory together.
var decoding = semaphore.NewWeighted(maxPage)

// heldKey is the key of the heldPage in a context.
type heldKey struct{}

// heldPage is a page until all its objects have been looked at.
type heldPage struct{ bytes int64 }

func (p *heldPage) release() { decoding.Release(p.bytes) }

// Limit returns a transport by which pages of Each are bounded. A page that is too large is answered as the API server would answer a
// request that is too large.
func Limit(next http.RoundTripper) http.RoundTripper { return limited{next} }

type limited struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	page, ok := r.Context().Value(heldKey{}).(*heldPage)
	if err != nil || !ok || response.StatusCode != http.StatusOK {
		return response, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPage+1))
	if err != nil {
		return nil, fmt.Errorf("read page: %w", err)
	}
	if len(body) > maxPage {
		return tooLarge(response)
	}
	page.release() // of an answer that the client did not take
	page.bytes = 0
	if err := decoding.Acquire(r.Context(), int64(len(body))); err != nil {
		return nil, fmt.Errorf("wait for the memory of a page: %w", err)
	}
	out := *response
	page.bytes, out.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
	return &out, nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (l limited) WrappedRoundTripper() http.RoundTripper { return l.next }

func tooLarge(response *http.Response) (*http.Response, error) {
	status := apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the list has more than %d bytes", maxPage)).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{Status: http.StatusText(http.StatusRequestEntityTooLarge),
		StatusCode: http.StatusRequestEntityTooLarge, Proto: response.Proto, ProtoMajor: response.ProtoMajor, ProtoMinor: response.ProtoMinor,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Request: response.Request}, nil
}
