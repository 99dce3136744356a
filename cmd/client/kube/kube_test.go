package kube

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
)

// kubeconfig writes a file with two contexts: "one" of namespace team-a, the current one, and "two".
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	text := `apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: here, cluster: {server: "` + server + `"}}
- {name: there, cluster: {server: "https://there.example:6443"}}
contexts:
- {name: one, context: {cluster: here, user: me, namespace: team-a}}
- {name: two, context: {cluster: there, user: me}}
users:
- {name: me, user: {token: secret}}
`
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// flags reads a command line.
func flags(t *testing.T, args ...string) *Flags {
	t.Helper()
	f, set := &Flags{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Register(set)
	f.RegisterNamespace(set, "of the test")
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

// nowhere takes the surroundings of whoever runs the test away.
func nowhere(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
}

func TestConnectFollowsKubectl(t *testing.T) {
	file := kubeconfig(t, "https://here.example:6443")
	other := kubeconfig(t, "https://elsewhere.example:6443")
	for _, c := range []struct {
		name                       string
		environment                string
		args                       []string
		server, namespace, errEnds string
	}{
		{"the file of KUBECONFIG", file, nil, "https://here.example:6443", "team-a", ""},
		{"--kubeconfig beats KUBECONFIG", file, []string{"--kubeconfig", other}, "https://elsewhere.example:6443", "team-a", ""},
		{"--context chooses another cluster", file, []string{"--context", "two"}, "https://there.example:6443", "default", ""},
		{"-n beats the namespace of the context", file, []string{"-n", "team-b"}, "https://here.example:6443", "team-b", ""},
		{"a context that is not there", file, []string{"--context", "three"}, "", "", `context "three" does not exist`},
		{"a file that is not there", "", []string{"--kubeconfig", "/absent/config"}, "", "", "no such file or directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			nowhere(t)
			if c.environment != "" {
				t.Setenv("KUBECONFIG", c.environment)
			}
			connection, err := flags(t, c.args...).Connect(cli.Streams{Version: "v1", Err: io.Discard})
			if c.errEnds != "" {
				if err == nil || !strings.HasSuffix(err.Error(), c.errEnds) {
					t.Fatalf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if connection.Config.Host != c.server || connection.Namespace != c.namespace {
				t.Errorf("%s, namespace %s", connection.Config.Host, connection.Namespace)
			}
		})
	}
}

// TestInPod: a flag that clientcmd does not give to the configuration of a pod's ServiceAccount counts there, too.
func TestInPod(t *testing.T) {
	t.Parallel()
	inPod := func() *rest.Config {
		return &rest.Config{Host: "https://10.0.0.1:443", BearerToken: "of-the-pod", TLSClientConfig: rest.TLSClientConfig{CAFile: "/pod/ca.crt"}}
	}
	for name, c := range map[string]struct {
		args []string
		want func(*rest.Config)
	}{
		"no flag": {nil, func(*rest.Config) {}},
		"--as": {[]string{"--as", "alice", "--as-group", "team-a", "--as-group", "team-b", "--as-uid", "7"}, func(c *rest.Config) {
			c.Impersonate = rest.ImpersonationConfig{UserName: "alice", UID: "7", Groups: []string{"team-a", "team-b"}}
		}},
		"--client-certificate": {[]string{"--client-certificate", "me.crt", "--client-key", "me.key"}, func(c *rest.Config) {
			c.CertFile, c.KeyFile = "me.crt", "me.key"
		}},
	} {
		got, want := inPod(), inPod()
		flags(t, c.args...).overrideInPod(got)
		c.want(want)
		if diff := cmp.Diff(want.String(), got.String()); diff != "" || !slices.Equal(want.Impersonate.Groups, got.Impersonate.Groups) {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestConnectWithoutCluster(t *testing.T) {
	nowhere(t)
	_, err := flags(t).Connect(cli.Streams{Version: "v1", Err: io.Discard})
	if !errors.Is(err, ErrNoCluster) || !strings.Contains(err.Error(), os.Getenv("KUBECONFIG")) {
		t.Errorf("error %v", err)
	}
}

func TestConnectSetsUserAgent(t *testing.T) {
	nowhere(t)
	var agent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agent = r.UserAgent()
		w.Header().Set("Warning", `299 - "mind the gap"`)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"NamespaceList","apiVersion":"v1"}`)
	}))
	defer server.Close()
	var warnings strings.Builder
	connection, err := flags(t, "--kubeconfig", kubeconfig(t, server.URL)).Connect(cli.Streams{Version: "v1.2.3", Err: &warnings})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connection.Client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if agent != "gpuslice/v1.2.3" || !strings.Contains(warnings.String(), "mind the gap") {
		t.Errorf("agent %q, warnings %q", agent, warnings.String())
	}
}

func TestConnectAsSomebody(t *testing.T) {
	nowhere(t)
	file := kubeconfig(t, "https://here.example:6443")
	c, err := flags(t, "--kubeconfig", file, "--cluster", "there", "--as", "alice", "--as-group", "team-a", "--as-group", "dev").Connect(
		cli.Streams{Err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Config.Impersonate; got.UserName != "alice" ||
		strings.Join(got.Groups, " ") != "team-a dev" || c.Config.Host != "https://there.example:6443" {
		t.Errorf("%s as %+v", c.Config.Host, got)
	}
	c, err = flags(t, "-s", "https://other.example:6443", "--token", "t", "--insecure-skip-tls-verify", "--as", "alice",
		"--as-uid", "7").Connect(cli.Streams{Err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if c.Config.Host != "https://other.example:6443" || c.Config.BearerToken != "t" || !c.Config.Insecure || c.Config.Impersonate.UID != "7" {
		t.Errorf("kubectl's other flags make %+v", c.Config)
	}
	if _, err := flags(t, "--kubeconfig", file, "--user", "nobody").Connect(cli.Streams{Err: io.Discard}); err == nil {
		t.Error("a user that the kubeconfig does not have is accepted")
	}
}
