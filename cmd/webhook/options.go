package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpuslice/gpuslice/certs"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/webhook/admission/server"
)

// Options are the settings of the command. The tags are the names of flags and of the file's keys.
type Options struct {
	Config           string        `mapstructure:"config"`
	Kubeconfig       string        `mapstructure:"kubeconfig"`
	Namespace        string        `mapstructure:"namespace"`
	Service          string        `mapstructure:"service"`
	Listen           string        `mapstructure:"listen"`
	MetricsListen    string        `mapstructure:"metrics-listen"`
	Certs            string        `mapstructure:"certs"`
	CertsSecret      string        `mapstructure:"certs-secret"`
	CertsNames       []string      `mapstructure:"certs-names"`
	CertsFile        string        `mapstructure:"certs-file"`
	CertsKeyFile     string        `mapstructure:"certs-key-file"`
	CertsCAFile      string        `mapstructure:"certs-ca-file"`
	CertsLife        time.Duration `mapstructure:"certs-lifetime"`
	CertsCALife      time.Duration `mapstructure:"certs-ca-lifetime"`
	CertsPropagation time.Duration `mapstructure:"certs-propagation"`
	Mutating         []string      `mapstructure:"mutating-configurations"`
	Validating       []string      `mapstructure:"validating-configurations"`
	Drain            time.Duration `mapstructure:"drain"`
	IdleGrace        time.Duration `mapstructure:"idle-grace"`
	Shutdown         time.Duration `mapstructure:"shutdown"`
	GuardImage       string        `mapstructure:"guard-image"`
	GuardMirrors     []string      `mapstructure:"guard-image-mirrors"`
	GuardPull        string        `mapstructure:"guard-pull-policy"`
	GuardSecret      string        `mapstructure:"guard-pull-secret"`
	GuardCPU         string        `mapstructure:"guard-cpu"`
	GuardMemory      string        `mapstructure:"guard-memory"`
	Observe          bool          `mapstructure:"observe"`
	UsageLabel       string        `mapstructure:"usage-label"`
	UsageDays        int           `mapstructure:"usage-days"`
	LogLevel         string        `mapstructure:"log-level"`
	LogFormat        string        `mapstructure:"log-format"`
}

// Sources of the serving certificate.
const (
	certsSelf        = "self"
	certsFiles       = "files"
	certsCertManager = "cert-manager"
)

// defineFlags declares every setting with its default.
func defineFlags(f *pflag.FlagSet) {
	f.String("config", "", "read settings from this YAML file")
	f.String("kubeconfig", "", "reach the API server by this kubeconfig; empty: by the pod's ServiceAccount")
	f.String("namespace", api.SystemNamespace, "use this namespace for policies, state and the authority")
	f.String("service", "gpuslice-webhook", "expect the API server's calls under the name of this Service")
	f.String("listen", ":"+strconv.Itoa(server.Port), "serve reviews on this address, over HTTPS")
	f.String("metrics-listen", ":"+strconv.Itoa(server.MetricsPort), "serve health, readiness and metrics on this address, over HTTP")
	f.String("certs", certsSelf,
		`take the serving certificate from "self" (an authority in a Secret), "cert-manager" (files, and the cainjector) or "files"`)
	f.String("certs-secret", "gpuslice-authority",
		"share the trusted authorities among replicas in this Secret, with --certs self or cert-manager")
	f.StringSlice("certs-names", nil, "add names or addresses under which the API server calls, with --certs self")
	f.String("certs-file", "", "serve this certificate (PEM), with --certs files or cert-manager")
	f.String("certs-key-file", "", "use this private key (PEM), with --certs files or cert-manager")
	f.String("certs-ca-file", "", "trust this authority (PEM), with --certs cert-manager")
	life := certs.DefaultLifetimes()
	f.Duration("certs-lifetime", life.Leaf, "issue serving certificates for this long, with --certs self")
	f.Duration("certs-ca-lifetime", life.Authority, "issue authorities for this long, with --certs self")
	f.Duration("certs-propagation", life.Propagation,
		"wait this long, once every webhook configuration trusts a new authority, before serving a certificate of it")
	f.StringSlice("mutating-configurations", []string{"gpuslice"}, "name the mutating webhook configurations that call this server")
	f.StringSlice("validating-configurations", []string{"gpuslice"}, "name the validating webhook configurations that call this server")
	f.Duration("drain", 15*time.Second, "after the signal to stop, keep answering for this long: until no endpoint names this replica")
	f.Duration("idle-grace", 15*time.Second,
		"after draining, keep idle API server connections open for this long; closing one early can lose a request")
	f.Duration("shutdown", 15*time.Second, "wait this long for reviews in flight, at the end")
	f.String("guard-image", "", "inject this image as the guard; empty: inject none, and do not plan its tier")
	f.StringSlice("guard-image-mirrors", nil,
		"accept the guard's image from these repositories too, with the same tag or digest: another webhook points to them")
	f.String("guard-pull-policy", "IfNotPresent", "pull the guard's image Always, IfNotPresent or Never")
	f.String("guard-pull-secret", "", "pull the guard's image with this Secret of the tenants' namespaces; empty: none")
	f.String("guard-cpu", "20m", "request and limit this much CPU for each guard container")
	f.String("guard-memory", "64Mi", "request and limit this much memory for each guard container")
	f.Bool("observe", true, "report on each pod which enforcement is in effect; one replica at a time does, chosen by a Lease")
	f.String("usage-label", "", "count what pods hold by this label of theirs as well; empty: by namespace and pool alone")
	f.Int("usage-days", 400, "keep what pods held for this many days")
	f.String("log-level", "info", "log at debug, info, warn or error")
	f.String("log-format", "json", "log as json or text")
}

// readOptions joins flags, environment, file and defaults.
func readOptions(flags *pflag.FlagSet) (Options, error) {
	v := viper.NewWithOptions(viper.KeyDelimiter("::"))
	v.SetEnvPrefix("GPUSLICE")
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_", "::", "_"))
	v.AutomaticEnv()
	var bound error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && f.Name != "version" {
			bound = errors.Join(bound, v.BindPFlag(f.Name, f))
		}
	})
	if bound != nil {
		return Options{}, fmt.Errorf("bind flags: %w", bound)
	}
	if path := v.GetString("config"); path != "" {
		v.SetConfigFile(path)
		v.SetConfigType("yaml")
		if err := v.ReadInConfig(); err != nil {
			return Options{}, fmt.Errorf("read settings %s: %w", path, err)
		}
	}
	var o Options
	if err := v.UnmarshalExact(&o); err != nil {
		return Options{}, fmt.Errorf("read settings: %w", err)
	}
	return o, o.validate()
}

// validate returns every problem.
func (o Options) validate() error {
	var errs []error
	problem := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: "+format, append([]any{key}, args...)...))
	}
	for key, value := range map[string]string{"namespace": o.Namespace, "service": o.Service} {
		if texts := validation.IsDNS1123Label(value); len(texts) > 0 {
			problem(key, "%q: %s", value, texts[0])
		}
	}
	for key, value := range map[string]string{"listen": o.Listen, "metrics-listen": o.MetricsListen} {
		if _, _, err := net.SplitHostPort(value); err != nil {
			problem(key, "%q is no host:port", value)
		}
	}
	o.validateCerts(problem)
	for key, value := range map[string]time.Duration{"drain": o.Drain, "idle-grace": o.IdleGrace, "shutdown": o.Shutdown} {
		if value < 0 || value > 10*time.Minute {
			problem(key, "%s: accepted are 0s to 10m", value)
		}
	}
	if !slices.Contains([]string{"Always", "IfNotPresent", "Never"}, o.GuardPull) {
		problem("guard-pull-policy", "%q: accepted are Always, IfNotPresent and Never", o.GuardPull)
	}
	for key, value := range map[string]string{"guard-cpu": o.GuardCPU, "guard-memory": o.GuardMemory} {
		if q, err := resource.ParseQuantity(value); err != nil || q.Sign() <= 0 {
			problem(key, "%q is no positive quantity", value)
		}
	}
	if texts := validation.IsQualifiedName(o.UsageLabel); o.UsageLabel != "" && len(texts) > 0 {
		problem("usage-label", "%q: %s", o.UsageLabel, texts[0])
	}
	if o.UsageDays < 1 || o.UsageDays > 3650 {
		problem("usage-days", "%d: accepted are 1 to 3650", o.UsageDays)
	}
	if _, err := newHandler(o, nil); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// validateCerts reports errors in the source of the certificate.
func (o Options) validateCerts(problem func(key, format string, args ...any)) {
	switch {
	case !slices.Contains([]string{certsSelf, certsFiles, certsCertManager}, o.Certs):
		problem("certs", "%q: accepted are %q, %q and %q", o.Certs, certsSelf, certsCertManager, certsFiles)
	case o.Certs != certsSelf && (o.CertsFile == "" || o.CertsKeyFile == ""):
		problem("certs", "%q needs certs-file and certs-key-file", o.Certs)
	case o.Certs == certsCertManager && o.CertsCAFile == "":
		problem("certs", "%q needs certs-ca-file: the key ca.crt of the Secret that cert-manager writes", o.Certs)
	case o.Certs != certsFiles && len(validation.IsDNS1123Subdomain(o.CertsSecret)) > 0:
		problem("certs-secret", "%q is no name of a Secret", o.CertsSecret)
	}
	if o.CertsPropagation < 0 || o.CertsPropagation > time.Hour {
		problem("certs-propagation", "%s: accepted are 0s to 1h", o.CertsPropagation)
	}
	if o.CertsLife < 10*time.Second {
		problem("certs-lifetime", "%s: accepted are 10s and more", o.CertsLife)
	}
	// A rotation begins with a fifth of its life and a certificate's whole life left, and must be over by the end.
	if least := 2 * (o.CertsLife + o.CertsPropagation); o.CertsCALife < least {
		problem("certs-ca-lifetime", "%s: accepted are %s and more, twice certs-lifetime and certs-propagation", o.CertsCALife, least)
	}
}

// guard has the settings of the injected guard; nil: none.
func (o Options) guard() *config.GuardSettings {
	if o.GuardImage == "" {
		return nil
	}
	return &config.GuardSettings{
		Image: o.GuardImage, Mirrors: o.GuardMirrors, PullPolicy: corev1.PullPolicy(o.GuardPull),
		PullSecret: o.GuardSecret, CPU: o.GuardCPU, Memory: o.GuardMemory,
	}
}

// names are all under which the API server may call.
func (o Options) names() []string {
	host := o.Service + "." + o.Namespace + ".svc"
	return append([]string{host, host + ".cluster.local"}, o.CertsNames...)
}
