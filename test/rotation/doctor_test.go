package rotation

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/doctor"
	"github.com/gpuslice/gpuslice/test/cluster"
)

// doctor returns what gpuslice doctor finds.
func (l *lab) doctor(t *testing.T) []doctor.Finding {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := doctor.New(cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }, Now: time.Now})
	cmd.SetArgs([]string{"--kubeconfig=" + l.server.Kubeconfig, "-o", "json"})
	cmd.SetErr(&errs)
	err := cmd.ExecuteContext(t.Context())
	if _, found := errors.AsType[cli.ExitError](err); err != nil && !found {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var list struct{ Items []doctor.Finding }
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), errs.String())
	}
	return list.Items
}

// diagnosis waits until doctor finds something, and returns it. Nothing else of that check is worse.
func (l *lab) diagnosis(t *testing.T, check string, level doctor.Level, text string) doctor.Finding {
	t.Helper()
	var last []doctor.Finding
	var got doctor.Finding
	defer func() {
		if t.Failed() {
			t.Logf("doctor found %+v", last)
		}
	}()
	await(t, check+" says "+text, time.Minute, func() bool {
		last = nil
		for _, f := range l.doctor(t) {
			if f.Check == check {
				last = append(last, f)
			}
		}
		for _, f := range last {
			if got = f; f.Level == level && strings.Contains(f.Summary, text) {
				return doctor.Worst(last) == level
			}
		}
		return false
	})
	t.Logf("%s %s: %s", got.Level, got.Check, got.Summary)
	return got
}

// overlay installs deploy with its component for cert-manager, as a user's overlay does.
func (l *lab) overlay(t *testing.T) {
	t.Helper()
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	deploy, err := filepath.Rel(dir, filepath.Join(checkout, "deploy"))
	if err != nil {
		t.Fatal(err)
	}
	text := "resources: [" + deploy + "]\ncomponents: [" + deploy + "/certmanager]\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l.kubectl(t, "apply", "--server-side", "--force-conflicts", "--kustomize="+dir)
}

func (l *lab) kubectl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := l.server.Kubectl(t.Context(), args...); err != nil {
		t.Fatalf("kubectl %q: %v\n%s", args, err, out)
	}
}

// TestDoctor has cert-manager's own controllers and cainjector fail, one after the other.
func TestDoctor(t *testing.T) {
	t.Parallel()
	t.Run("names what keeps cert-manager from its work", func(t *testing.T) {
		l := newLab(t, cluster.CertManager()...)
		l.certManagerTypes(t)
		l.overlay(t)
		l.diagnosis(t, "certificates", doctor.Problem, "Certificate gpuslice-webhook is not ready: cert-manager has not reported on it")
		l.diagnosis(t, "ca-injector", doctor.Problem, "does not run: nothing writes caBundle")

		l.kubectl(t, "-n", system, "delete", "issuer", "gpuslice-webhook-root")
		if err := l.server.StartCertManager(""); err != nil {
			t.Fatal(err)
		}
		l.diagnosis(t, "certificates", doctor.Problem,
			"Issuer gpuslice-webhook-root, which Certificate gpuslice-webhook-authority names, does not exist")
		l.diagnosis(t, "certificates", doctor.Problem, "Issuer gpuslice-webhook-authority is not ready: Error getting keypair")
		unready := l.diagnosis(t, "certificates", doctor.Problem,
			"Certificate gpuslice-webhook is not ready: Issuing certificate as Secret does not exist")
		if len(unready.Evidence) == 0 || unready.Evidence[0].Object != "certificate/"+system+"/gpuslice-webhook" {
			t.Errorf("evidence %+v", unready.Evidence)
		}

		l.overlay(t)
		l.diagnosis(t, "certificates", doctor.OK, "cert-manager keeps the webhook's certificate")
		l.start(t, l.certManager(t, 0, l.mount(t, 0)))
		l.diagnosis(t, "ca-injector", doctor.OK, "runs")

		l.kubectl(t, "-n", system, "patch", "certificate", "gpuslice-webhook", "--type=merge", `-p={"spec":{"secretName":"other"}}`)
		l.diagnosis(t, "certificates", doctor.Problem, "no Certificate writes Secret gpuslice-webhook-tls")
		l.overlay(t)
		l.diagnosis(t, "certificates", doctor.OK, "cert-manager keeps the webhook's certificate")

		pid, err := l.server.PID("certmanager")
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		l.diagnosis(t, "ca-injector", doctor.Warning, "does not run: a new authority does not reach caBundle")
		l.kubectl(t, "patch", "mutatingwebhookconfiguration", configured, "--type=json",
			`-p=[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`)
		l.diagnosis(t, "ca-injector", doctor.Problem, "does not run: nothing writes caBundle")

		l.kubectl(t, "delete", "crd", "certificates.cert-manager.io", "issuers.cert-manager.io", "clusterissuers.cert-manager.io",
			"certificaterequests.cert-manager.io")
		l.diagnosis(t, "certificates", doctor.Problem, "CustomResourceDefinitions are not installed")
	})
}
