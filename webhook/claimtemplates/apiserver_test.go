package claimtemplates

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/nativequota"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWriterOnAPIServer has the rights of the webhook's ServiceAccount and no others, under the policies of the API server itself.
func TestWriterOnAPIServer(t *testing.T) {
	s := cluster.ForTest(t, cluster.Options{})
	applier, err := install.NewApplier(s.Config)
	must(t, err)
	for _, name := range []string{"10-namespace.yaml", "20-rbac.yaml", "25-own-rights.yaml"} {
		manifest, err := deploy.Files.ReadFile(name)
		must(t, err)
		must(t, applier.Apply(t.Context(), manifest))
	}
	must(t, s.Namespace(t.Context(), "team-a", nil))
	before := lying("team-a", "gpuslice-1mi")
	before.UID, before.ResourceVersion = "", ""
	before, err = s.Client.ResourceV1().ResourceClaimTemplates("team-a").Create(t.Context(), before, metav1.CreateOptions{})
	must(t, err)
	manifest, err := deploy.Files.ReadFile("58-claims.yaml")
	must(t, err)
	must(t, applier.Apply(t.Context(), manifest))

	config, err := s.ServiceAccount(t.Context(), api.SystemNamespace, "gpuslice-webhook")
	must(t, err)
	client := kubernetes.NewForConfigOrDie(config)
	templates := resourceinformers.NewResourceClaimTemplateInformer(client, metav1.NamespaceAll, 0, cache.Indexers{})
	w := New(Options{Client: client, Templates: templates, Governed: func() ([]nativequota.Governed, error) { return governed("claim", "team-a"), nil }, Log: logr.Discard()})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { templates.RunWithContext(ctx); done <- nil }()
	go func() { done <- w.Run(ctx) }()
	defer func() {
		cancel()
		must(t, errors.Join(<-done, <-done))
	}()
	for _, name := range []string{four, "gpuslice-1mi", "gpuslice-2x20480mi-of-81920mi-share"} {
		p := pod("team-a", strings.ReplaceAll(name, ".", "-"), name)
		p.UID = ""
		p.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.test/app:1"}}
		_, err := s.Client.CoreV1().Pods("team-a").Create(t.Context(), p, metav1.CreateOptions{})
		must(t, err)
		want := templateOf("team-a", name)
		err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			got, err := s.Client.ResourceV1().ResourceClaimTemplates("team-a").Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil && got.UID != before.UID && equality.Semantic.DeepEqual(got.Spec.Spec, want.Spec.Spec), err
		})
		if err != nil {
			t.Fatalf("%s is not there, or not what it says: %v", name, err)
		}
	}
	events, err := s.Client.CoreV1().Events("team-a").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == ReasonReplaced && e.InvolvedObject.UID == before.UID }) {
		t.Errorf("the template that was replaced has no Event: %v", events.Items)
	}
	others(t, s, client)
}

// others has the ServiceAccount write and delete templates that are not gpuslice's.
func others(t *testing.T, s *cluster.APIServer, client kubernetes.Interface) {
	mine := templateOf("team-a", four)
	mine.Name, mine.UID, mine.ResourceVersion = "mine", "", ""
	templates := client.ResourceV1().ResourceClaimTemplates("team-a")
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := templates.Create(ctx, mine, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "gpuslice-own-templates"), nil
	})
	if err != nil {
		t.Fatalf("it writes templates with other names: %v", err)
	}
	_, err = s.Client.ResourceV1().ResourceClaimTemplates("team-a").Create(t.Context(), mine, metav1.CreateOptions{})
	must(t, err)
	if err := templates.Delete(t.Context(), "mine", metav1.DeleteOptions{}); err == nil || !strings.Contains(err.Error(), "gpuslice-own-templates") {
		t.Errorf("it deletes a template of a tenant's: %v", err)
	}
}
