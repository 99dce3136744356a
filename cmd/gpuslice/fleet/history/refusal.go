package history

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/guard/shorten"
)

// What a server answers that is no success, and what to do about it.

const (
	maxTries = 5
	maxPause = 30 * time.Second
)

// pauseOf is how long a server that has too much to do wants clients to wait: 429 of Mimir and VictoriaMetrics, 503 with Retry-After.
func pauseOf(resp *http.Response) (pause time.Duration, busy bool) {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return time.Second, resp.StatusCode == http.StatusTooManyRequests
	}
	return min(time.Duration(min(seconds, 3600))*time.Second, maxPause),
		resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable
}

// unreachable adds what to do about a server that gives no answer.
func unreachable(err error) error {
	if unknown := (*tls.CertificateVerificationError)(nil); errors.As(err, &unknown) {
		return fmt.Errorf("%w; name the file of its authority with --prometheus-ca", err)
	}
	if failed := (*net.OpError)(nil); errors.As(err, &failed) {
		return fmt.Errorf("%w; is it running, and is it the address of Prometheus?", err)
	}
	return err
}

// answerError is the error of an answer that is no success.
type answerError struct {
	status int
	text   string
}

func (e *answerError) Error() string { return e.text }

// tooLargeWords are words in servers' answers to a query that takes too much, which less time would cure. Prometheus, Thanos, Mimir and
// VictoriaMetrics count samples, series, chunks, bytes or time.
var tooLargeWords = []string{tooManySamples, "too many chunks", "maxSamplesPerQuery", "time range", "exceeded the maximum", "limit",
	"too long query", "message larger than max"}

// wantsLess reports whether a query of less time may have an answer: 422 is what servers answer where a query takes too much.
func wantsLess(err error) bool {
	failed := (*answerError)(nil)
	if !errors.As(err, &failed) {
		return strings.Contains(err.Error(), tooManySamples) // an error inside an answer
	}
	return failed.status == http.StatusUnprocessableEntity || failed.status == http.StatusRequestEntityTooLarge ||
		(failed.status == http.StatusBadRequest || failed.status >= http.StatusInternalServerError) &&
			slices.ContainsFunc(tooLargeWords, func(word string) bool { return strings.Contains(failed.text, word) })
}

// answered is the error of an answer that is no success: of Prometheus, of the API server before it, or of a proxy. What the server says
// stays in it: it has the remedy.
func answered(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // the status is enough
	var problem struct{ Error, Message string }
	said := ""
	if json.Unmarshal(text, &problem) == nil {
		said = cmp.Or(problem.Error, problem.Message)
	} else if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		said = string(text)
	}
	withRemedy := func(remedy string) error {
		if said = shorten.Line(said, maxSaid); said == "" {
			return &answerError{resp.StatusCode, "it answers " + resp.Status + ": " + remedy}
		}
		return &answerError{resp.StatusCode, "it answers " + resp.Status + ": " + strings.TrimSuffix(said+"; "+remedy, "; ")}
	}
	if strings.Contains(said, "org id") || strings.Contains(said, "tenant ID") {
		return withRemedy(`name its tenant with --prometheus-header "X-Scope-OrgID: TENANT"`)
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect:
		if problem.Error+problem.Message == "" {
			return withRemedy("it wants a login; give a token with --prometheus-token-file, or what else it wants with --prometheus-header")
		}
	}
	if problem.Error+problem.Message != "" || said != "" && resp.StatusCode != http.StatusNotFound {
		return withRemedy("")
	}
	return withRemedy("is it the address of Prometheus?")
}

// maxSaid bounds what is printed of a server's text: VictoriaMetrics' remedy stands after 500 bytes.
const maxSaid = 1000
