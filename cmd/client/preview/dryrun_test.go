package preview

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/cmd/client/clusters"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies"
)

// apiServer answers a create of path with status and body; a body "" echoes the object as if it were stored. It denies
// every right but to create in namespace "own".
func apiServer(t *testing.T, path string, status int, body string) *Engine {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","status":{"allowed":%t}}`,
				strings.Contains(string(sent), "own"))
			return
		}
		if r.URL.Path != path || r.URL.Query().Get("dryRun") != "All" {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header().Set("Warning", `299 - "mind the gap"`)
		w.WriteHeader(status)
		if body == "" {
			body = strings.Replace(string(sent), `"spec":{`, `"status":{},"spec":{"dnsPolicy":"ClusterFirst","enableServiceLinks":true,`, 1)
			body = strings.Replace(body, `"generateName":"a-"`, `"generateName":"a-","name":"a-x7k","uid":"1"`, 1)
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	e := New(&clusters.Cluster{})
	if e.server, err = newServer(&kube.Connection{Config: config, Client: client}); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEvaluateByDryRun(t *testing.T) {
	const (
		pod        = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]}}`
		deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"template":{"spec":{"containers":[{"name":"c"}]}}}}`
		forbidden  = `{"apiVersion":"v1","kind":"Status","status":"Failure","message":"denied: too large","reason":"Forbidden","code":403}`
	)
	for _, c := range []struct {
		name, path, object, namespace string
		status                        int
		body                          string
		outcome                       policies.Outcome // "": an error
	}{
		{"a pod comes back without what the server adds", "/api/v1/namespaces/own/pods", pod, "own", http.StatusCreated, "", policies.Unchanged},
		{"a pod is denied", "/api/v1/namespaces/own/pods", pod, "own", http.StatusForbidden, forbidden, policies.Denied},
		{"a user without the right gets no answer", "/api/v1/namespaces/other/pods", pod, "other", http.StatusForbidden, forbidden, ""},
		{"a workload is denied under its own group", "/apis/apps/v1/namespaces/own/deployments", deployment, "own",
			http.StatusForbidden, forbidden, policies.Denied},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := apiServer(t, c.path, c.status, c.body)
			var o manifest.Object
			if err := json.Unmarshal([]byte(c.object), &o); err != nil {
				t.Fatal(err)
			}
			o.Name, o.Namespace, o.Raw = "a", c.namespace, json.RawMessage(c.object)
			all, err := e.Evaluate(t.Context(), o)
			if c.outcome == "" {
				if !errors.Is(err, errNoRight) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || len(all) != 1 || all[0].Decision.Outcome != c.outcome {
				t.Fatalf("%v, %v", all, err)
			}
			r := all[0]
			if c.outcome == policies.Denied && (len(r.Decision.Violations) != 1 || r.Decision.Violations[0].Detail != "denied: too large") {
				t.Errorf("violations %v", r.Decision.Violations)
			}
			if c.outcome == policies.Unchanged && (string(r.After) != c.object || len(r.Decision.Warnings) != 1) {
				t.Errorf("comes out as %s, with %q", r.After, r.Decision.Warnings)
			}
		})
	}
}
