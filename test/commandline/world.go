package commandline

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/program"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/memoryapi"
)

// World is a cluster whose API server is memory. The user's context is in namespace team-a.
type World struct {
	Folders   []string // of objects; those that are not there are left out
	Nodes     string
	Forbidden []string // resources that the user may not list
	Fails     func(resource string) bool
	Requested func(*url.URL)    // is called for each request; nil: nothing is
	Metrics   map[string]string // what ports of pods serve, by NAMESPACE/POD:PORT; a text that begins with STATUS is an error or a redirect
}

// Serve makes a world the current cluster.
func Serve(t *testing.T, w World) *memoryapi.Server {
	t.Helper()
	server, err := memoryapi.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	front := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		if w.Requested != nil {
			w.Requested(req.URL)
		}
		if resource := path.Base(req.URL.Path); slices.Contains(w.Forbidden, resource) {
			forbid(out, resource)
			return
		} else if w.Fails != nil && w.Fails(resource) {
			http.Error(out, "etcdserver: leader changed", http.StatusInternalServerError)
			return
		}
		if parts := strings.Split(req.URL.Path, "/"); slices.Contains(parts, "proxy") {
			w.proxy(out, req, parts[4]+"/"+strings.TrimPrefix(parts[6], "http:"))
			return
		}
		server.ServeHTTP(out, req)
	}))
	t.Cleanup(front.Close)
	for _, o := range w.Objects(t) {
		if err := server.Put(o); err != nil {
			t.Fatal(err)
		}
	}
	use(t, front.URL)
	return server
}

// proxy answers as the port of a pod does.
func (w World) proxy(out http.ResponseWriter, req *http.Request, port string) {
	text, served := w.Metrics[port]
	status, rest, failed := strings.Cut(text, ":")
	code, err := strconv.Atoi(strings.TrimPrefix(status, "STATUS "))
	switch {
	case slices.Contains(w.Forbidden, "pods/proxy"):
		forbid(out, "pods/proxy")
	case !served:
		http.Error(out, "error trying to reach service: dial tcp 10.0.0.1:80: connect: connection refused", http.StatusServiceUnavailable)
	case failed && err == nil:
		out.Header().Set("Location", "http://"+req.Host+"/api/v1/namespaces/elsewhere/pods/http:thief:80/proxy/metrics")
		http.Error(out, strings.TrimSpace(rest), code)
	default:
		_, _ = io.WriteString(out, text)
	}
}

// Objects are the world's, pods as the webhook would have made them.
func (w World) Objects(t *testing.T) (all []*unstructured.Unstructured) {
	t.Helper()
	paths := []string{w.Nodes}
	for _, folder := range w.Folders {
		if _, err := os.Stat(folder); err == nil {
			paths = append(paths, folder)
		}
	}
	reader := manifest.Reader{}
	for _, d := range reader.Documents(paths, manifest.MaxManifest) {
		objects, unread := d.Objects()
		for _, failed := range unread {
			t.Fatal(failed)
		}
		for _, o := range objects {
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(o.Raw); err != nil {
				t.Fatal(err)
			}
			if o.Kind == "Pod" && object.GetAnnotations()[api.AnnotationPromise] == "" {
				object = w.created(t, object)
			}
			all = append(all, object)
		}
	}
	return all
}

// created is a pod as the webhook would have made it.
func (w World) created(t *testing.T, authored *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	text, err := authored.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	s := StreamsTo(&out, &errs)
	s.In = bytes.NewReader(text)
	args := []string{"gpuslice", "render", "-f", "-", "-o", "json", "--nodes", w.Nodes,
		"--guard-image", "registry.example/gpuslice/guard:v0.3.0"}
	for _, folder := range w.Folders {
		if file := filepath.Join(folder, "system.yaml"); FileExists(file) {
			args = append(args, "--policies", file)
		}
	}
	if code := program.Run(t.Context(), args, s); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	var list struct {
		Items []struct{ Object map[string]any }
	}
	if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%v: %s", err, out.String())
	}
	pod := &unstructured.Unstructured{Object: list.Items[0].Object}
	return later(t, authored, pod)
}

// FileExists reports whether there is something at a path.
func FileExists(at string) bool {
	_, err := os.Stat(at)
	return err == nil
}

// later is a pod as the scheduler and the observer left it: they write what annotations of its author hold.
func later(t *testing.T, authored, pod *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	said, annotations := authored.GetAnnotations(), pod.GetAnnotations()
	delete(annotations, "node")
	delete(annotations, "observed")
	if said["observed"] != "" {
		annotations[api.AnnotationObserved] = said["observed"]
	}
	pod.SetAnnotations(annotations)
	if said["node"] != "" {
		if err := unstructured.SetNestedField(pod.Object, said["node"], "spec", "nodeName"); err != nil {
			t.Fatal(err)
		}
	}
	return pod
}

// use makes an API server that of the current context.
func use(t *testing.T, address string) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: address}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", Namespace: "team-a"}
	config.CurrentContext = "test"
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	t.Setenv(clientcmd.RecommendedConfigPathEnvVar, kubeconfig)
}

func forbid(w http.ResponseWriter, resource string) {
	status := apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New(`User "alice" cannot list resource`)).Status()
	status.APIVersion, status.Kind = "v1", "Status"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_ = json.NewEncoder(w).Encode(status)
}
