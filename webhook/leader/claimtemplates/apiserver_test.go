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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/governed"
	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
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
	w := New(Options{Client: client, Templates: templates,
		Governed: func() ([]governed.Namespace, error) { return under("claim", "team-a"), nil }, Log: logr.Discard()})
	ctx, cancel := context.WithCancel(t.Context())
	pods := podcache.NewInformer(podcache.Options{Client: client, Templates: NamedBy})
	done := make(chan error, 3)
	go func() { pods.RunWithContext(ctx); done <- nil }()
	go func() { templates.RunWithContext(ctx); done <- nil }()
	go func() { done <- w.Run(ctx, pods) }()
	defer func() {
		cancel()
		must(t, errors.Join(<-done, <-done, <-done))
	}()
	for _, name := range []string{four, "gpuslice-1mi", "gpuslice-2x20480mi-of-81920mi-share"} {
		createPod(t, s, name)
		awaitTemplate(t, s, name, before.UID)
	}
	events, err := s.Client.CoreV1().Events("team-a").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if !slices.ContainsFunc(events.Items,
		func(e corev1.Event) bool { return e.Reason == ReasonReplaced && e.InvolvedObject.UID == before.UID }) {
		t.Errorf("the template that was replaced has no Event: %v", events.Items)
	}
	endPod(t, s, templates.GetStore())
	others(t, s, client)
}

// createPod creates one that names a template, by the name of that template.
func createPod(t *testing.T, s *cluster.APIServer, template string) {
	t.Helper()
	p := pod("team-a", strings.ReplaceAll(template, ".", "-"), template)
	p.UID = ""
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.test/app:1"}}
	_, err := s.Client.CoreV1().Pods("team-a").Create(t.Context(), p, metav1.CreateOptions{})
	must(t, err)
}

// awaitTemplate waits for a template that is what its name says, and is another than the one that was there before.
func awaitTemplate(t *testing.T, s *cluster.APIServer, name string, before types.UID) {
	t.Helper()
	want := templateOf("team-a", name)
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		got, err := s.Client.ResourceV1().ResourceClaimTemplates("team-a").Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && got.UID != before && equality.Semantic.DeepEqual(got.Spec.Spec, want.Spec.Spec), err
	})
	if err != nil {
		t.Fatalf("%s is not there, or not what it says: %v", name, err)
	}
}

// endPod has a tenant delete a template that a pod names, and one whose pod has ended: the first alone is written anew. Pods come in
// between, so that what was shown before them has been seen: templates of one namespace are written in the order of their names.
func endPod(t *testing.T, s *cluster.APIServer, seen cache.Store) {
	t.Helper()
	const ended = "gpuslice-1mi"
	_, err := s.Client.CoreV1().Pods("team-a").Patch(t.Context(), ended, types.MergePatchType,
		[]byte(`{"status": {"phase": "Succeeded"}}`), metav1.PatchOptions{}, "status")
	must(t, err)
	createPod(t, s, "gpuslice-8mi")
	awaitTemplate(t, s, "gpuslice-8mi", "")
	for _, name := range []string{four, ended} {
		lost, err := s.Client.ResourceV1().ResourceClaimTemplates("team-a").Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		must(t, s.Client.ResourceV1().ResourceClaimTemplates("team-a").Delete(t.Context(), name, metav1.DeleteOptions{}))
		if name == four {
			awaitTemplate(t, s, name, lost.UID)
		}
	}
	must(t, wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		_, ok, err := seen.GetByKey("team-a/" + ended)
		return !ok, err
	}))
	createPod(t, s, "gpuslice-9mi")
	awaitTemplate(t, s, "gpuslice-9mi", "")
	if _, err := s.Client.ResourceV1().ResourceClaimTemplates("team-a").Get(t.Context(), ended,
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the template of a pod that has ended is written anew: %v", err)
	}
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
	if err := templates.Delete(t.Context(), "mine", metav1.DeleteOptions{}); err == nil ||
		!strings.Contains(err.Error(), "gpuslice-own-templates") {
		t.Errorf("it deletes a template of a tenant's: %v", err)
	}
}
