package certs

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// TestAnAPIServerThatDoesNotAnswerMakesNoCertificateBad is about all replicas at once: not ready, none would be called,
// and pods would pass as they are.
func TestAnAPIServerThatDoesNotAnswerMakesNoCertificateBad(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"secrets", "mutatingwebhookconfigurations"} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			client := cluster()
			s := source(client)
			fail := func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("too busy") }
			mustCheck(t, s)
			client.PrependReactor("get", resource, fail)
			if err := check(t, s, time.Now()); err == nil {
				t.Fatal("the check passed")
			}
			if err := s.Ready(); err != nil {
				t.Errorf("not ready: %v", err)
			}
			fresh := source(client)
			if err := check(t, fresh, time.Now()); err == nil || fresh.Ready() == nil {
				t.Error("a source that never verified its certificate is ready")
			}
		})
	}
}
