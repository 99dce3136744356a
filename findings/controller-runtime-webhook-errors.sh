#!/usr/bin/env bash
# One would expect: a webhook that cannot decide answers so that the API server counts the call as failed, and failurePolicy decides.
# What happens: it depends on the place of the error. A handler's own error (Errored with code 500, or a panic that is recovered) is a
# well-formed denial of HTTP status 200, so failurePolicy: Ignore has no say, and the user reads the internal error. An error before the
# handler (here a content type) is status 200 and a denial, too, but without uid and kind: the API server takes that for a failed call,
# so failurePolicy decides and the text is lost.
# sigs.k8s.io/controller-runtime v0.25.2, pkg/webhook/admission/http.go, response.go; read as the API server does, by
# k8s.io/apiserver v0.37.2, pkg/admission/plugin/webhook/request/admissionreview.go.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > go.mod <<'END'
module finding

go 1.26

require (
	k8s.io/api v0.37.2
	k8s.io/apiserver v0.37.2
	sigs.k8s.io/controller-runtime v0.25.2
)
END
cat > main.go <<'END'
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/request"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1","operation":"CREATE",` +
	`"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"}}}`

// read is what the API server makes of the answer to a review.
func read(contentType string, handle admission.HandlerFunc) (status int, outcome string) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(review))
	r.Header.Set("Content-Type", contentType)
	(&admission.Webhook{Handler: handle}).ServeHTTP(w, r)
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		return w.Code, "not JSON: " + err.Error()
	}
	verified, err := request.VerifyAdmissionResponse("u1", false, &answer)
	if err != nil {
		return w.Code, fmt.Sprintf("failed call: %v (the webhook wrote %q)", err, answer.Response.Result.Message)
	}
	return w.Code, fmt.Sprintf("allowed %t, code %d, %q", verified.Allowed, verified.Result.Code, verified.Result.Message)
}

func main() {
	away := func(context.Context, admission.Request) admission.Response {
		return admission.Errored(http.StatusInternalServerError, errors.New("the database is away"))
	}
	same := true
	for _, c := range []struct {
		title, contentType string
		handle             admission.HandlerFunc
		want               string
	}{
		{"the handler's error", "application/json", away, `allowed false, code 500, "the database is away"`},
		{"a panic of the handler", "application/json", func(context.Context, admission.Request) admission.Response { panic("no entry") },
			`allowed false, code 500, "panic: no entry [recovered]"`},
		{"an error before the handler", "application/json; charset=utf-8", away,
			`failed call: expected response.uid="u1", got "" ` +
				`(the webhook wrote "contentType=application/json; charset=utf-8, expected application/json")`},
	} {
		status, outcome := read(c.contentType, c.handle)
		fmt.Printf("%-28s HTTP %d, %s\n", c.title, status, outcome)
		same = same && status == http.StatusOK && outcome == c.want
	}
	if !same {
		fmt.Println("CHANGED: the behaviour is another one")
		os.Exit(1)
	}
}
END
echo "sigs.k8s.io/controller-runtime v0.25.2, k8s.io/apiserver v0.37.2"
CGO_ENABLED=0 GOFLAGS=-mod=mod go run -trimpath . 2> err || { cat err; exit 1; }
