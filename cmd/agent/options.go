package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpuslice/gpuslice/guard/lease"
	"github.com/gpuslice/gpuslice/policies/api"
)

// options are the settings of the command.
type options struct {
	node           string
	namespace      string
	kubeconfig     string
	listen         string
	nvmlLibrary    string
	procDir        string
	mpsDirectories []string
	mpsControl     string
	devicePlugins  string
	dryRun         bool
	logLevel       string
}

// define declares every setting with its default.
func (o *options) define(f *pflag.FlagSet) {
	f.StringVar(&o.node, "node", "", "enforce the slices of the pods of this node")
	f.StringVar(&o.namespace, "namespace", api.SystemNamespace, "keep this node's Lease in this namespace")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "reach the API server by this kubeconfig; empty: by the pod's ServiceAccount")
	f.StringVar(&o.listen, "listen", ":8080", "serve health, readiness and metrics on this address, over HTTP")
	f.StringVar(&o.nvmlLibrary, "nvml-library", "", "load this NVML library; empty: libnvidia-ml.so.1")
	f.StringVar(&o.procDir, "proc-dir", "/proc", "read processes from this proc file system")
	f.StringSliceVar(&o.mpsDirectories, "mps-directories", []string{"/run/nvidia/mps"}, "look for pipes of MPS daemons in these directories")
	f.StringVar(&o.mpsControl, "mps-control", "", "run this program to control MPS daemons; empty: nvidia-cuda-mps-control on PATH")
	f.StringVar(&o.devicePlugins, "device-plugins", "/var/lib/kubelet/device-plugins",
		"register with the kubelet in this folder, so that guarded pods start here")
	f.BoolVar(&o.dryRun, "dry-run", false, "report every decision, terminate nothing, and have no guarded pod start here")
	f.StringVar(&o.logLevel, "log-level", "info", "log at debug, info, warn or error")
}

// validate returns every problem.
func (o *options) validate() error {
	var failed []error
	if texts := validation.IsDNS1123Subdomain(o.node); len(texts) > 0 {
		failed = append(failed, fmt.Errorf("node: %q: %s", o.node, texts[0]))
	}
	if texts := validation.IsDNS1123Subdomain(lease.Name(o.node)); o.node != "" && len(texts) > 0 {
		failed = append(failed, fmt.Errorf("node: the Lease %q: %s", lease.Name(o.node), texts[0]))
	}
	if texts := validation.IsDNS1123Label(o.namespace); len(texts) > 0 {
		failed = append(failed, fmt.Errorf("namespace: %q: %s", o.namespace, texts[0]))
	}
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		failed = append(failed, fmt.Errorf("listen: %q is no host:port", o.listen))
	}
	for _, directory := range o.mpsDirectories {
		if !strings.HasPrefix(directory, "/") {
			failed = append(failed, fmt.Errorf("mps-directories: %q is no absolute path", directory))
		}
	}
	if !strings.HasPrefix(o.devicePlugins, "/") {
		failed = append(failed, fmt.Errorf("device-plugins: %q is no absolute path", o.devicePlugins))
	}
	if _, err := o.level(); err != nil {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (o *options) level() (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return 0, fmt.Errorf("log-level: %q: accepted are debug, info, warn and error", o.logLevel)
	}
	return level, nil
}
