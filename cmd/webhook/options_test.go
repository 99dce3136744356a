package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/cmd/component"
)

// defaults are the settings of a command without arguments.
func defaults() Options {
	return Options{
		Namespace: "gpuslice-system", Service: "gpuslice-webhook", Listen: ":9443", MetricsListen: ":8080",
		Certs: "self", CertsSecret: "gpuslice-authority", CertsNames: []string{}, GuardMirrors: []string{},
		CertsLife: 7 * 24 * time.Hour, CertsCALife: 365 * 24 * time.Hour, CertsPropagation: time.Minute,
		Mutating: []string{"gpuslice"}, Validating: []string{"gpuslice"},
		Drain: 15 * time.Second, IdleGrace: 15 * time.Second, Shutdown: 15 * time.Second,
		GuardPull: "IfNotPresent", GuardCPU: "20m", GuardMemory: "64Mi",
		Observe: true, UsageDays: 400, LogLevel: "info", LogFormat: "json",
	}
}

// settings runs the command with a run that keeps its settings.
func settings(t *testing.T, args ...string) (Options, int, string) {
	t.Helper()
	var got Options
	var stderr bytes.Buffer
	code := execute(t.Context(), args, io.Discard, &stderr, func(_ context.Context, o Options, _ io.Writer) error {
		got = o
		return nil
	})
	return got, code, stderr.String()
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadOptions(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		env  map[string]string
		args []string
		want func(*Options)
	}{
		"nothing said":          {want: func(*Options) {}},
		"a flag alone":          {args: []string{"--drain", "1s"}, want: func(o *Options) { o.Drain = time.Second }},
		"the environment alone": {env: map[string]string{"GPUSLICE_METRICS_LISTEN": ":1"}, want: func(o *Options) { o.MetricsListen = ":1" }},
		"the file alone":        {file: "metrics-listen: ':2'\n", want: func(o *Options) { o.MetricsListen = ":2" }},
		"the environment over file": {file: "drain: 2s", env: map[string]string{"GPUSLICE_DRAIN": "3s"},
			want: func(o *Options) { o.Drain = 3 * time.Second }},
		"a flag over everything": {file: "drain: 2s", env: map[string]string{"GPUSLICE_DRAIN": "3s"}, args: []string{"--drain=4s"},
			want: func(o *Options) { o.Drain = 4 * time.Second }},
		"usage": {args: []string{"--usage-label", "example.com/team", "--usage-days", "30"},
			want: func(o *Options) { o.UsageLabel, o.UsageDays = "example.com/team", 30 }},
		"a switch": {args: []string{"--observe=false"}, want: func(o *Options) { o.Observe = false }},
		"a list in the environment": {env: map[string]string{"GPUSLICE_CERTS_NAMES": "a,b"},
			want: func(o *Options) { o.CertsNames = []string{"a", "b"} }},
		"a list in the file": {file: "certs-names: [a, 10.99.0.2]", want: func(o *Options) { o.CertsNames = []string{"a", "10.99.0.2"} }},
		"a list in flags": {args: []string{"--certs-names=a", "--certs-names=b"},
			want: func(o *Options) { o.CertsNames = []string{"a", "b"} }},
		"the variables that Kubernetes sets for a Service called gpuslice-webhook": {
			env:  map[string]string{"GPUSLICE_WEBHOOK_PORT": "tcp://10.96.0.9:443", "GPUSLICE_WEBHOOK_SERVICE_HOST": "10.96.0.9"},
			want: func(*Options) {}},
	} {
		t.Run(name, func(t *testing.T) {
			want := defaults()
			if tt.file != "" {
				want.Config = file(t, tt.file)
				tt.args = append(tt.args, "--config", want.Config)
			}
			for key, value := range tt.env {
				t.Setenv(key, value)
			}
			tt.want(&want)
			got, code, stderr := settings(t, tt.args...)
			if diff := cmp.Diff(want, got); diff != "" || code != component.ExitOK {
				t.Errorf("exit %d %s\n(-want +got)\n%s", code, stderr, diff)
			}
		})
	}
}

func TestValidateOptions(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		args []string
		want []string
	}{
		"an unknown flag":           {args: []string{"--listn=:1"}, want: []string{"--listn"}},
		"an argument":               {args: []string{"serve"}, want: []string{`"serve"`}},
		"an unknown key":            {file: "listn: ':1'", want: []string{"listn"}},
		"a repeated key":            {file: "listen: ':1'\nlisten: ':2'", want: []string{"listen"}},
		"a file that is not there":  {args: []string{"--config=/nowhere.yaml"}, want: []string{"/nowhere.yaml"}},
		"a duration without a unit": {file: "drain: soon", want: []string{"drain"}},
		"several at once": {args: []string{"--listen=9443", "--certs=magic", "--drain=-1s", "--log-level=loud", "--namespace=A"},
			want: []string{"listen:", "certs:", "drain:", "log-level:", "namespace:"}},
		"an unknown log format": {args: []string{"--log-format=xml"}, want: []string{"log-format:"}},
		"files without a file":  {args: []string{"--certs=files"}, want: []string{"certs-file"}},
		"cert-manager without an authority": {args: []string{"--certs=cert-manager", "--certs-file=a", "--certs-key-file=b"},
			want: []string{"certs-ca-file"}},
		"an authority shorter than its certificates": {args: []string{"--certs-lifetime=24h", "--certs-ca-lifetime=24h"},
			want: []string{"certs-ca-lifetime:"}},
		"a Secret that cannot exist": {args: []string{"--certs-secret=A_B"}, want: []string{"certs-secret:"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.file != "" {
				tt.args = append(tt.args, "--config", file(t, tt.file))
			}
			_, code, stderr := settings(t, tt.args...)
			if code != component.ExitUsage {
				t.Errorf("exit %d, want %d", code, component.ExitUsage)
			}
			for _, text := range tt.want {
				if !strings.Contains(stderr, text) {
					t.Errorf("%q does not name %q", stderr, text)
				}
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	for flag, want := range map[string][]string{
		"--help":    {"--metrics-listen", "GPUSLICE_LISTEN", "Exit codes", "--certs files"},
		"--version": {"webhook version " + version},
	} {
		var stdout bytes.Buffer
		if code := execute(t.Context(), []string{flag}, &stdout, io.Discard, nil); code != component.ExitOK {
			t.Errorf("%s: exit %d", flag, code)
		}
		for _, text := range want {
			if !strings.Contains(stdout.String(), text) {
				t.Errorf("%s does not say %q:\n%s", flag, text, &stdout)
			}
		}
	}
}
