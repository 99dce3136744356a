package ledger_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

func TestClusterStoreErrors(t *testing.T) {
	var answer error
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "a"}})
	client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return answer != nil, nil, answer })
	get := func() error {
		_, err := ledger.ClusterStore{Client: client, Namespace: system}.Get(t.Context(), "a")
		return err
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupResource{Resource: "configmaps"}
	for name, c := range map[string]struct{ err, want error }{
		"not there":          {apierrors.NewNotFound(kind, "a"), ledger.ErrNotFound},
		"there already":      {apierrors.NewAlreadyExists(kind, "a"), ledger.ErrExists},
		"changed":            {apierrors.NewConflict(kind, "a", errors.New("changed")), ledger.ErrConflict},
		"forbidden":          {apierrors.NewForbidden(kind, "a", errors.New("no")), ledger.ErrRejected},
		"too large":          {apierrors.NewRequestEntityTooLargeError("a"), ledger.ErrRejected},
		"too many requests":  {apierrors.NewTooManyRequests("later", 1), ledger.ErrUnknown},
		"timed out":          {apierrors.NewTimeoutError("a", 1), ledger.ErrUnknown},
		"internal error":     {apierrors.NewInternalError(errors.New("etcd")), ledger.ErrUnknown},
		"the caller gave up": {context.DeadlineExceeded, ledger.ErrUnknown},
	} {
		answer = c.err
		if err := get(); !errors.Is(err, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want it to be %v", name, err, c.want)
		}
	}
}

func TestClusterStoreOnAPIServer(t *testing.T) {
	s := cluster.ForTest(t, cluster.Options{})
	ctx := t.Context()
	if err := errors.Join(s.Namespace(ctx, system, nil), s.Namespace(ctx, "team-a", nil)); err != nil {
		t.Fatal(err)
	}
	store := ledger.ClusterStore{Client: s.Client, Namespace: system}
	want := func(what string, err, kind error) {
		t.Helper()
		if !errors.Is(err, kind) {
			t.Errorf("%s: %v, want %v", what, err, kind)
		}
	}
	_, err := store.Get(ctx, "gpuslice-ledger-a")
	want("read what is not there", err, ledger.ErrNotFound)
	first, err := store.Create(ctx, ledger.Object{Name: "gpuslice-ledger-a", Budget: teamA, Data: []byte("{}")})
	want("create", err, nil)
	_, err = store.Create(ctx, ledger.Object{Name: first.Name})
	want("create again", err, ledger.ErrExists)
	second := first
	second.Data = []byte(`{"v":1}`)
	second, err = store.Update(ctx, second)
	want("update", err, nil)
	_, err = store.Update(ctx, first)
	want("update by an old version", err, ledger.ErrConflict)
	if got, err := store.Get(ctx, first.Name); err != nil || string(got.Data) != `{"v":1}` || got.Version != second.Version || got.UID == "" {
		t.Errorf("read back %+v, %v", got, err)
	}
	_, err = ledger.ClusterStore{Client: s.Client, Namespace: "nowhere"}.Create(ctx, first)
	want("create in no namespace", err, ledger.ErrRejected)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = store.Get(gone, first.Name)
	want("read by one who has gone", err, ledger.ErrUnknown)

	for _, name := range []string{"lives", "done"} {
		if _, err := s.Client.CoreV1().Pods("team-a").Create(ctx, gpuPod(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	done := []byte(`{"status":{"phase":"Succeeded"}}`)
	if _, err := s.Client.CoreV1().Pods("team-a").Patch(ctx, "done", types.MergePatchType, done, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	l, err := (&ledger.ClusterLister{Client: s.Client, HoldingOf: hold, Generation: sameGeneration}).List(ctx, []string{"team-a", "nowhere"})
	if err != nil || len(l.Pods) != 1 || l.Pods[0].Name != "lives" || l.Pods[0].Holding.Charge.GPUs != 1 || !l.Pods[0].Unmanaged {
		t.Errorf("listed %+v, %v", l.Pods, err)
	}
	if len(l.Namespaces) != 2 || l.Namespaces[0].UID == "" || l.Namespaces[1].UID != "" {
		t.Errorf("namespaces %+v", l.Namespaces)
	}
}
