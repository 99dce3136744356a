package fleet_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/source"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/program"
	"github.com/gpuslice/gpuslice/test/commandline"
)

// liveFleet makes the world of testdata/fleet.txtar the current cluster, in whose folder the test goes on. It returns the file.
func liveFleet(t *testing.T, forbidden ...string) string {
	t.Helper()
	return serveFleet(t, commandline.World{Forbidden: forbidden})
}

// serveFleet is liveFleet with an API server that fails, or is watched, as w has it.
func serveFleet(t *testing.T, w commandline.World) string {
	t.Helper()
	name, err := filepath.Abs("testdata/fleet.txtar")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	folder, metrics := t.TempDir(), map[string]string{}
	for _, f := range archive.Files {
		if port, ok := strings.CutPrefix(f.Name, "metrics/"); ok {
			metrics[port] = string(f.Data)
			continue
		}
		commandline.Write(t, filepath.Join(folder, f.Name), f.Data)
	}
	t.Chdir(folder)
	w.Folders, w.Nodes, w.Metrics = append(w.Folders, "live"), "nodes.yaml", metrics
	commandline.Serve(t, w)
	return name
}

// indented is a compressed document to look at.
func indented(t *testing.T, compressed []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		t.Fatal(err)
	}
	return commandline.Steady(out.String()) + "\n"
}

func TestSnapshot(t *testing.T) {
	name := liveFleet(t)
	var out, errs bytes.Buffer
	if code := program.Run(t.Context(), strings.Fields("gpuslice snapshot -o fleet.json.gz"), commandline.StreamsTo(&out, &errs)); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	text, err := os.ReadFile("fleet.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{"want/fleet.json": indented(t, text), "want/stderr": commandline.Steady(errs.String())}
	if *update {
		for i := range archive.Files {
			if f := &archive.Files[i]; got[f.Name] != "" {
				f.Data = []byte(got[f.Name])
			}
		}
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, f := range archive.Files {
		if strings.HasPrefix(f.Name, "want/") {
			if diff := cmp.Diff(string(f.Data), got[f.Name]); diff != "" {
				t.Errorf("%s (-want +got, go test ./cmd/gpuslice/fleet -update rewrites it):\n%s", f.Name, diff)
			}
		}
	}
	if _, err := source.ReadFile("fleet.json.gz"); err != nil {
		t.Error(err)
	}
	for _, secret := range []string{"hunter2", "registry.example", "command-line-text", "annotation-text"} {
		if strings.Contains(got["want/fleet.json"], secret) {
			t.Errorf("%q is in the snapshot", secret)
		}
	}
}

// TestHashedSnapshot: a pod that is too large once its labels are hashed does not keep the snapshot from being written.
func TestHashedSnapshot(t *testing.T) {
	labels := map[string]string{}
	for i := range 18_000 {
		labels[strconv.FormatInt(int64(i), 36)] = ""
	}
	pod, err := json.Marshal(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "hostile", Name: "large", Labels: labels},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
				Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	commandline.Write(t, filepath.Join(folder, "large.yaml"), pod)
	serveFleet(t, commandline.World{Folders: []string{folder}})
	for flag, want := range map[string]string{"": "exit 0", "--hash-names": "exit 0: pods of namespace x"} {
		var out, errs bytes.Buffer
		code := program.Run(t.Context(), strings.Fields("gpuslice snapshot --usage=false -o fleet.json.gz "+flag),
			commandline.StreamsTo(&out, &errs))
		if got := fmt.Sprintf("exit %d: %s", code, errs.String()); !strings.HasPrefix(got, want) ||
			flag == "" && strings.Contains(got, "left out") {
			t.Errorf("%q: %s", flag, got)
		}
	}
}

// TestSnapshotRights: what may not be read stands in the snapshot, unless there is nothing without it.
func TestSnapshotRights(t *testing.T) {
	for _, c := range []struct {
		forbidden string
		exit      int
		want      string
	}{
		{"configmaps", 0, "pools that policies declare are unknown: "},
		{"resourceslices", 0, "pools of dynamic resource allocation are unknown: "},
		{"namespaces", 0, "quotas are unknown: "},
		{"pods/proxy", 0, "the usage of 1 containers is unknown: "},
		{"nodes", 2, "read nodes: "},
		{"pods", 2, "read pods of every namespace: "},
	} {
		t.Run(c.forbidden, func(t *testing.T) {
			liveFleet(t, c.forbidden)
			var out, errs bytes.Buffer
			code := program.Run(t.Context(), strings.Fields("gpuslice snapshot --hash-names -o fleet.json.gz"), commandline.StreamsTo(&out, &errs))
			if code != c.exit || !strings.Contains(errs.String(), c.want) {
				t.Errorf("exit %d, %s", code, errs.String())
			}
			_, err := os.Stat("fleet.json.gz")
			if (err == nil) != (c.exit == 0) {
				t.Errorf("exit %d, and the file: %v", c.exit, err)
			}
			left, err := filepath.Glob(".fleet*")
			if err != nil || len(left) > 0 {
				t.Errorf("%q, %v", left, err)
			}
		})
	}
}

// TestPage: the page of a cluster, of a snapshot, and of two.
func TestPage(t *testing.T) {
	liveFleet(t)
	pages := map[string]string{}
	for _, args := range []string{"snapshot -o fleet.json.gz", "page -o live.html", "page --from fleet.json.gz -o file.html",
		"page --from fleet.json.gz --compare fleet.json.gz -o two.html"} {
		var out, errs bytes.Buffer
		if code := program.Run(t.Context(), strings.Fields("gpuslice "+args), commandline.StreamsTo(&out, &errs)); code != 0 {
			t.Fatalf("%s: exit %d: %s", args, code, errs.String())
		}
	}
	for _, name := range []string{"live", "file", "two"} {
		text, err := os.ReadFile(name + ".html")
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = string(text)
	}
	if pages["live"] != pages["file"] {
		t.Error("the page of a cluster is not that of its snapshot")
	}
	if n := strings.Count(pages["two"], `"title":"after"`); n != 1 || !strings.Contains(pages["two"], `"name":"busy"`) {
		t.Errorf("%d views are called after", n)
	}
}
