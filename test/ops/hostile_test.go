package ops

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/admission/server"
)

const (
	largest     = 4 << 20 // bytes of the largest review that is read
	memoryLimit = 512 << 20
	atOnce      = 8
)

// filled is a pod with a list, a map or a text that is repeated up to the size of the largest review.
func filled(begin, item, end string) string {
	const frame = 4 << 10
	return begin + strings.TrimSuffix(strings.Repeat(item, (largest-frame-len(begin)-len(end))/len(item)), ",") + end
}

// hostile are pods that cost as much as they can.
func hostile() map[string]string {
	const asks = `{"metadata":{"name":"x","labels":{"gpuslice.dev/memory":"1Gi"}},"spec":{"containers":[`
	const one = asks + `{"name":"a","image":"a","resources":{"limits":{"nvidia.com/gpu":"1"}}`
	containers := func(item string) string { return filled(asks, item, `]}}`) }
	inside := func(field, item string) string { return filled(one+`,"`+field+`":[`, item, `]}]}}`) }
	beside := func(field, item string) string { return filled(one+`}],"`+field+`":[`, item, `]}}`) }
	noted := func(field string) string {
		return filled(`{"metadata":{"name":"x","annotations":{"`+field+`":"`, `[{`,
			`"},"labels":{"gpuslice.dev/memory":"1Gi"}},"spec":{"containers":[{"name":"a"}]}}`)
	}
	all := map[string]string{
		"containers that ask for nothing": containers(`{},`),
		"containers that ask for a GPU":   containers(`{"name":"a","resources":{"limits":{"nvidia.com/gpu":"1"}}},`),
		"a promise of four megabytes":     noted("gpuslice.dev/promise"),
		"slices of four megabytes":        noted("gpuslice.dev/containers"),
		"objects in objects":              filled(asks, `{"a":`, ``),
		"lists in lists":                  filled(asks, `[`, ``),
		"fields that nobody knows":        filled(one+`}],"x":[`, `{},`, `]}}`),
		"fields of managers": filled(`{"metadata":{"name":"x","labels":{"gpuslice.dev/memory":"1Gi"},"managedFields":[`,
			`{},`, `]},"spec":{"containers":[]}}`),
		"numbers that are long": filled(one+`}],"priority":`, `9`, `}}`),
	}
	for _, field := range []string{"env", "envFrom", "volumeMounts", "ports", "args"} {
		item := `{},`
		if field == "args" {
			item = `"",`
		}
		all[field] = inside(field, item)
	}
	for _, field := range []string{"initContainers", "ephemeralContainers", "volumes", "tolerations", "resourceClaims", "hostAliases"} {
		all[field] = beside(field, `{},`)
	}
	return all
}

// review is what the API server would send of a pod.
func review(object string) []byte {
	return []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002",` +
		`"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"namespace":"` + team +
		`","operation":"CREATE","userInfo":{"username":"jane"},"oldObject":null,"dryRun":true,"object":` + object + `}}`)
}

// caller asks a replica itself, as whoever reaches its address can.
type caller struct {
	*http.Client
	at string
}

func newCaller(p *install.Process) caller {
	return caller{&http.Client{Timeout: longest, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 1000, IdleConnTimeout: apiServerIdle,
	}}, "https://" + p.Reviews}
}

// ask posts a review and returns the answer's status and, where there is one, its verdict.
func (c caller) ask(ctx context.Context, path string, body []byte) (int, *admissionv1.AdmissionResponse, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.at+path+"?timeout=10s", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := c.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	var answer admissionv1.AdmissionReview
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return response.StatusCode, nil, err
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Response == nil ||
		answer.Response.UID != types.UID("705ab4f5-6393-11e8-b7cc-42010a800002") {
		return 0, nil, fmt.Errorf("read answer %.100q: %v", text, err)
	}
	return response.StatusCode, answer.Response, nil
}

// well requests a slice, and is only content with one.
func (c caller) well(ctx context.Context) error {
	code, answer, err := c.ask(ctx, server.PathMutatePods, review(
		`{"metadata":{"name":"x","labels":{"gpuslice.dev/memory":"1Gi"}},"spec":{"containers":[{"name":"a","image":"a","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}`))
	if err != nil || code != http.StatusOK || !answer.Allowed || !bytes.Contains(answer.Patch, []byte(api.ResourceGPU)) {
		return fmt.Errorf("answered %d %+v: %v", code, answer, err)
	}
	return nil
}

func TestHostileReviews(t *testing.T) {
	t.Run("harm nobody else", func(t *testing.T) {
		l := newLab(t, cluster.Options{}, install.Options{}, "")
		c, pid := newCaller(l.Webhook), l.Webhook.PID()
		t.Logf("at rest: %d MiB", memory(t, pid, "VmRSS")>>20)
		others := l.load(4, c.well)
		var bodies [][]byte
		for name, pod := range hostile() {
			body := review(pod)
			if len(body) > largest || len(body) < largest/2 {
				t.Fatalf("%s: %d bytes", name, len(body))
			}
			bodies = append(bodies, body)
		}
		var next atomic.Int64
		var codes [600]atomic.Int64
		attack := l.load(atOnce, func(ctx context.Context) error {
			n := int(next.Add(1))
			path := []string{server.PathMutatePods, server.PathValidatePods}[n/len(bodies)%2]
			code, _, err := c.ask(ctx, path, bodies[n%len(bodies)])
			codes[code].Add(1)
			return err
		})
		eventually(t, scaled(3*time.Minute, 10*time.Minute), "every hostile review is asked", func() string {
			if rounds := scaled(4, 10); attack.count() < rounds*len(bodies) && attack.failures() == "" {
				return fmt.Sprintf("%d of %d rounds of %d are through", attack.count()/len(bodies), rounds, len(bodies))
			}
			return ""
		})
		attack.end()
		others.end()
		peak := memory(t, pid, "VmHWM")
		var told []string
		for code := range codes {
			if n := codes[code].Load(); n > 0 {
				told = append(told, fmt.Sprintf("%d: %d", code, n))
			}
		}
		t.Logf("%d hostile reviews, %d at once, answered %v; at most %d MiB; %d others, p99 %s", attack.count(), atOnce, told, peak>>20,
			others.count(), brief(quantile(others.times, 99)))
		figure("hostile reviews", "reviews of 4 MiB, at once; most memory", "%d, %d; %d MiB", attack.count(), atOnce, peak>>20)
		figure("hostile reviews", "others meanwhile; p50, p99", "%d; %s, %s", others.count(),
			brief(quantile(others.times, 50)), brief(quantile(others.times, 99)))
		if text := attack.failures(); text != "" {
			t.Errorf("hostile reviews were not answered:\n%s", text)
		}
		if text := others.failures(); text != "" || others.count() == 0 {
			t.Errorf("others, of whom %d were answered:\n%s", others.count(), text)
		}
		if peak > memoryLimit {
			t.Errorf("it took %d MiB", peak>>20)
		}
		l.sameProcess(pid)
	})
}

// sameProcess fails the test where the replica is not the process that it was.
func (l *lab) sameProcess(pid int) {
	l.t.Helper()
	if err := newCaller(l.Webhook).well(l.t.Context()); err != nil || l.Webhook.PID() != pid {
		l.t.Errorf("the replica no longer answers: %v", err)
	}
}

// memory is a field of the process's status that counts memory, in bytes.
func memory(t *testing.T, pid int, field string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), field+":")
	kib := 0
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatalf("read %s: %v", field, err)
	}
	return kib << 10
}

// eventually polls until why has nothing to say.
func eventually(t *testing.T, within time.Duration, what string, why func() string) {
	t.Helper()
	begin := time.Now()
	for {
		text := why()
		if text == "" {
			return
		}
		if time.Since(begin) > within {
			t.Fatalf("%s: not within %s: %s", what, within, text)
		}
		pause(t.Context(), 50*time.Millisecond)
	}
}
