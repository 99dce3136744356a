package bypass

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"nothing":            {nil, "no namespace: name it"},
		"no time":            {[]string{"-n", "a", "--reason", "x"}, "--duration 0s: accepted"},
		"too long":           {[]string{"-n", "a", "--reason", "x", "--duration", "25h"}, "at most 24h0m0s"},
		"backwards":          {[]string{"-n", "a", "--reason", "x", "--duration", "-1m"}, "--duration -1m0s: accepted"},
		"no reason":          {[]string{"-n", "a", "--duration", "1m"}, `--reason "": accepted: a text`},
		"a story":            {[]string{"-n", "a", "--duration", "1m", "--reason", strings.Repeat("x", 257)}, "1 to 256 characters"},
		"begin and end":      {[]string{"-n", "a", "--duration", "1m", "--end"}, "none of the others can be"},
		"a form that is not": {[]string{"--list", "-o", "xml"}, `-o "xml": accepted: text, json, yaml, jsonpath`},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := New(cli.Streams{Out: io.Discard, Err: io.Discard})
			cmd.SetArgs(tt.args)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// bypassed is a call of the command on a cluster in memory.
type bypassed struct {
	*bypasser
	client *fake.Clientset
	out    *bytes.Buffer
}

func newBypassed(namespaces ...runtime.Object) *bypassed {
	c := fake.NewClientset(namespaces...)
	c.PrependReactor("create", "selfsubjectreviews", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{
			UserInfo: authenticationv1.UserInfo{Username: "alice"}}}, nil
	})
	out := &bytes.Buffer{}
	o := &options{Flags: kube.Flags{Namespace: "team-a"}, duration: 30 * time.Minute, reason: "the certificate is broken", output: "text"}
	return &bypassed{&bypasser{client: c, options: o, streams: cli.Streams{Out: out, Err: out}}, c, out}
}

func teamA() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{"team": "a"},
		Annotations: map[string]string{"note": "b"}}}
}

func (b *bypassed) namespace(t *testing.T) *corev1.Namespace {
	t.Helper()
	ns, err := b.client.CoreV1().Namespaces().Get(t.Context(), "team-a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

func TestBeginAndEnd(t *testing.T) {
	b := newBypassed(teamA())
	if err := b.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns := b.namespace(t)
	got, ok := policies.BypassOf(ns.Labels, ns.Annotations)
	if left := time.Until(got.Until); !ok || got.By != "alice" ||
		got.Reason != "the certificate is broken" || left > 30*time.Minute || left < 29*time.Minute {
		t.Errorf("%t, %+v", ok, got)
	}
	if !strings.HasPrefix(b.out.String(), "namespace team-a is bypassed until "+got.Until.Format(time.RFC3339)) ||
		!strings.Contains(b.out.String(), "gpuslice bypass -n team-a --end") {
		t.Errorf("said:\n%s", b.out)
	}
	b.out.Reset()
	if err := b.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(teamA(), b.namespace(t)); diff != "" {
		t.Errorf("the namespace is not what it was (-want +got):\n%s", diff)
	}
	if err := b.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "the bypass of namespace team-a is over: gpuslice denies again what breaks its policies\nnamespace team-a is not bypassed\n"; b.out.String() != want {
		t.Errorf("said:\n%s", b.out)
	}
}

func TestList(t *testing.T) {
	mark := func(name string, b policies.Bypass) *corev1.Namespace {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.LabelBypass: "true"},
			Annotations: b.Annotations()}}
		if b.Until.IsZero() {
			ns.Annotations = nil
		}
		return ns
	}
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	b := newBypassed(teamA(), mark("soon", policies.Bypass{Until: soon, By: "alice", Reason: "a\x1b[2Jb"}),
		mark("past", policies.Bypass{Until: past}), mark("by-hand", policies.Bypass{}))
	b.options.Namespace = ""
	if err := b.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"soon       " + soon.UTC().Format(time.RFC3339) + "  ", "a [2Jb",
		past.UTC().Format(time.RFC3339) + " (overdue: gpuslice is not running)", "by-hand    not set"} {
		if !strings.Contains(b.out.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.out)
		}
	}
	if strings.Contains(b.out.String(), "team-a") {
		t.Errorf("a namespace without a bypass is shown:\n%s", b.out)
	}
	b.out.Reset()
	b.options.output = "json"
	if err := b.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	var list cli.List[item]
	if err := json.Unmarshal(b.out.Bytes(), &list); err != nil || list.Kind != "BypassList" || len(list.Items) != 3 {
		t.Errorf("%v\n%s", err, b.out)
	}
}

func TestBeginWithoutNamespace(t *testing.T) {
	b := newBypassed()
	if err := b.begin(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("%v", err)
	}
}
