package apiserver

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// programs are what tests start themselves.
var programs struct {
	bin               cluster.Bin
	webhook, gpuslice string
}

// installed is gpuslice on an API server that all tests of the package share; nil where they are not wanted.
var installed *install.Installation

func TestMain(m *testing.M) {
	if !cluster.Wanted("apiserver") {
		os.Exit(m.Run())
	}
	code, err := withInstallation(m)
	if err != nil {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

func withInstallation(m *testing.M) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	bin, err := cluster.Build(ctx, os.Stderr, cluster.ControlPlane()...)
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "slices-test-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	binary, err := install.Binary(ctx, dir, "cmd/webhook")
	if err != nil {
		return 1, err
	}
	command, err := install.Binary(ctx, dir, "cmd/gpuslice")
	if err != nil {
		return 1, err
	}
	programs.bin, programs.webhook, programs.gpuslice = bin, binary, command
	server, err := cluster.StartAPIServer(ctx, cluster.Options{Bin: bin, Gates: "GenericWorkload=true", Flags: []string{podGroups()}})
	if err != nil {
		return 1, err
	}
	defer server.Stop()
	applier, err := install.NewApplier(server.Config)
	if err != nil {
		return 1, err
	}
	if err := applier.Apply(ctx, []byte(install.ClusterPolicyKind)); err != nil {
		return 1, err
	}
	if installed, err = install.NewWith(ctx, server, binary, dir,
		install.Options{Arguments: []string{"--guard-image-mirrors", guardMirror}}); err != nil {
		return 1, err
	}
	defer installed.Stop()
	if err := classes(ctx, server); err != nil {
		return 1, err
	}
	if err := installed.Runtimes(ctx, []byte(runtimeClasses), pools.Runtimes{}); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// runtimeClasses are those that scenarios without a cluster of their own name. The handlers are nobody's, so that guard.access: auto
// sees none of NVIDIA's.
const runtimeClasses = `{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: nvidia}, handler: other}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: gvisor}, handler: gvisor}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: kata}, handler: kata}
`

// need skips a test where no API server was asked for.
func need(t *testing.T) *install.Installation {
	t.Helper()
	if installed == nil {
		t.Skip("needs a real API server: set GPUSLICE_TEST=apiserver to run it")
	}
	return installed
}

// classes makes the priority classes that scenarios name: the server denies pods that name others.
func classes(ctx context.Context, server *cluster.APIServer) error {
	for _, name := range []string{"gpu-batch", "gpu-high", "high", "low", "batch", "research", "team-high", "production"} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 1000}
		if _, err := server.Client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// namespaced turns a scenario's policy document into one for a namespace of its own, and what it says about pools into
// the cluster's default, where alone that may stand.
func namespaced(document []byte, namespace string) (own, offered string) {
	var ownLines, poolLines []string
	inPools := false
	for line := range strings.SplitSeq(strings.TrimSpace(string(document)), "\n") {
		if line != "" && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "-") && !strings.HasPrefix(line, "#") {
			inPools = strings.HasPrefix(line, "pools:")
		}
		if inPools {
			poolLines = append(poolLines, line)
		} else {
			ownLines = append(ownLines, line)
		}
	}
	own = strings.Join(ownLines, "\n") + "\nnamespaces: {names: [" + namespace + "]}\n"
	return own, strings.Join(poolLines, "\n")
}

// defaultPolicy governs namespaces without a policy of their own with nothing, and declares pools.
func defaultPolicy(offered string) []byte {
	return []byte("apiVersion: " + config.APIVersion + "\nmode: off\n" + offered + "\n")
}

// poolNames are the pools that the webhook has to know before a group of cases can run.
func poolNames(t *testing.T, source pools.Source, document []byte) []string {
	t.Helper()
	p, problems := config.Parse("default", document)
	if len(problems) > 0 {
		t.Fatal(problems.ToAggregate())
	}
	var names []string
	for _, pool := range source.Pools(p.Pools, nil) {
		names = append(names, pool.Name)
	}
	return names
}
