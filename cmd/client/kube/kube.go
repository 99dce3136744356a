// Package kube is how the commands of gpuslice reach a cluster: with kubectl's flags, kubectl's precedence, and errors that
// name the way out.
//
// It uses client-go's clientcmd and not cli-runtime's ConfigFlags: those bring kustomize and a disk cache along for the
// sake of three flags.
package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
)

// ErrNoCluster is returned if nothing names a cluster. Commands that can do without one add how.
var ErrNoCluster = errors.New("no kubeconfig")

// Bounds on one request. The API server itself gives up after 34 s.
const (
	requestTimeout = 30 * time.Second
	dialTimeout    = 5 * time.Second
)

// Requests of one command: it sends a handful at once, and then exits.
const (
	clientQPS   = 50
	clientBurst = 100
)

// Flags name the cluster that a command talks to, with kubectl's flags, and the installation in it.
type Flags struct {
	Kubeconfig, Context, Namespace string
	System                         string // the namespace of the installation
	Timeout                        time.Duration

	cluster, user, as string
	asGroups          []string
	others            clientcmd.ConfigOverrides // by the flags of kubectl that few need
}

// ConnectionFlags are the flags that Register registers and help shows.
func ConnectionFlags() []string {
	return []string{"kubeconfig", "context", "cluster", "user", "as", "as-group", "request-timeout"}
}

// Register registers --kubeconfig, --context, --cluster, --user, --as, --as-group and --request-timeout.
func (f *Flags) Register(flags *pflag.FlagSet) {
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "",
		"`FILE` with the cluster to connect to (default: KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount)")
	flags.StringVar(&f.Context, "context", "", "`CONTEXT` of the kubeconfig (default: its current one)")
	flags.StringVar(&f.cluster, "cluster", "", "`CLUSTER` of the kubeconfig (default: the context's)")
	flags.StringVar(&f.user, "user", "", "`USER` of the kubeconfig (default: the context's)")
	flags.StringVar(&f.as, "as", "", "`USERNAME` to impersonate")
	flags.StringArrayVar(&f.asGroups, "as-group", nil, "`GROUP` to impersonate; may be repeated")
	f.registerOthers(flags)
	flags.DurationVar(&f.Timeout, "request-timeout", requestTimeout, "how long one request to the API server may take")
}

// RegisterInstalled registers the flags of a command about an installation: the flags of Register, --system-namespace and, if
// namespace describes one, -n. The shell completes them.
func (f *Flags) RegisterInstalled(cmd *cobra.Command, s cli.Streams, namespace string) {
	f.Register(cmd.Flags())
	cli.SystemNamespaceFlag(cmd.Flags(), &f.System)
	if namespace != "" {
		f.RegisterNamespace(cmd.Flags(), namespace)
	}
	f.CompleteNamespaces(cmd, s)
}

// registerOthers registers the flags that kubectl lists under "kubectl options" alone: they are accepted, and not in the help.
func (f *Flags) registerOthers(flags *pflag.FlagSet) {
	cluster, user := &f.others.ClusterInfo, &f.others.AuthInfo
	flags.StringVarP(&cluster.Server, "server", "s", "", "`ADDRESS` of the API server")
	flags.StringVar(&cluster.CertificateAuthority, "certificate-authority", "", "`FILE` with the API server's authority")
	flags.StringVar(&cluster.TLSServerName, "tls-server-name", "", "`NAME` in the API server's certificate")
	flags.BoolVar(&cluster.InsecureSkipTLSVerify, "insecure-skip-tls-verify", false, "do not check the API server's certificate")
	flags.StringVar(&user.Token, "token", "", "bearer `TOKEN`")
	flags.StringVar(&user.ClientCertificate, "client-certificate", "", "`FILE` with the client's certificate")
	flags.StringVar(&user.ClientKey, "client-key", "", "`FILE` with the client's key")
	flags.StringVar(&user.ImpersonateUID, "as-uid", "", "`UID` to impersonate")
	for _, name := range []string{"server", "certificate-authority", "tls-server-name",
		"insecure-skip-tls-verify", "token", "client-certificate", "client-key", "as-uid"} {
		_ = flags.MarkHidden(name) // fails only for a flag that is not registered
	}
}

// RegisterNamespace registers -n, --namespace. usage describes the namespace.
func (f *Flags) RegisterNamespace(flags *pflag.FlagSet, usage string) {
	flags.StringVarP(&f.Namespace, "namespace", "n", "", "`NAMESPACE` "+usage)
}

// Named reports whether the command line itself names a cluster.
func (f *Flags) Named() bool {
	return f.Kubeconfig != "" || f.Context != "" || f.cluster != "" || f.others.ClusterInfo.Server != ""
}

// Connection is a cluster that a command talks to. No request was sent yet.
type Connection struct {
	Config  *rest.Config
	Client  kubernetes.Interface
	Objects dynamic.Interface // of kinds that are not Kubernetes' own
	// Context is the kubeconfig's; "": there is none, as in a pod.
	Context string
	// Namespace is the value of -n, else the context's own, else "default".
	Namespace string
}

// String names the cluster for people.
func (c *Connection) String() string {
	if c.Context == "" {
		return c.Config.Host
	}
	return fmt.Sprintf("context %s (%s)", c.Context, c.Config.Host)
}

// Connect finds the cluster that the flags name. The API server's audit log shows the version of s; warnings of the API
// server go to standard error.
func (f *Flags) Connect(s cli.Streams) (*Connection, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	rules.WarnIfAllMissing = false
	overrides := &f.others
	overrides.CurrentContext = f.Context
	overrides.Context.Namespace, overrides.Context.Cluster, overrides.Context.AuthInfo = f.Namespace, f.cluster, f.user
	overrides.AuthInfo.Impersonate, overrides.AuthInfo.ImpersonateGroups = f.as, f.asGroups
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("%w: %s; name one with --kubeconfig FILE or KUBECONFIG", ErrNoCluster, searched())
	}
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	f.overrideInPod(config)
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.UserAgent = "gpuslice/" + s.Version
	config.QPS, config.Burst = clientQPS, clientBurst
	config.Timeout = f.Timeout
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	}
	config.WarningHandler = rest.NewWarningWriter(s.Err, rest.WarningWriterOptions{Deduplicate: true})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	named := f.Context
	if raw, err := loader.RawConfig(); err == nil {
		named = cmp.Or(named, raw.CurrentContext)
	}
	return &Connection{Config: config, Client: client, Objects: objects, Context: named, Namespace: namespace}, nil
}

// overrideInPod sets the user, which clientcmd leaves out of the configuration of a pod's ServiceAccount. One from a
// kubeconfig has it already.
func (f *Flags) overrideInPod(config *rest.Config) {
	user := f.others.AuthInfo
	config.Impersonate.UserName = cmp.Or(f.as, config.Impersonate.UserName)
	config.Impersonate.UID = cmp.Or(user.ImpersonateUID, config.Impersonate.UID)
	if len(f.asGroups) > 0 {
		config.Impersonate.Groups = f.asGroups
	}
	config.CertFile = cmp.Or(user.ClientCertificate, config.CertFile)
	config.KeyFile = cmp.Or(user.ClientKey, config.KeyFile)
}

// searched names the places where no cluster was found.
func searched() string {
	if named := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); named != "" {
		return fmt.Sprintf("KUBECONFIG is %q, and there is no cluster in it", named)
	}
	return "there is none in " + clientcmd.RecommendedHomeFile + ", and this is no pod of a cluster"
}

// List is the call of a client that lists the objects of a kind.
type List[L runtime.Object] func(context.Context, metav1.ListOptions) (L, error)

// Listed returns the objects of a list that the API server returned: T is a pointer to their type, or an interface of it.
func Listed[T any](list runtime.Object, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	out := make([]T, 0, meta.LenList(list))
	err = meta.EachListItem(list, func(o runtime.Object) error {
		out = append(out, any(o).(T))
		return nil
	})
	return out, err
}

// Read is Listed for a call that is still to be made. what names the objects in an error.
func Read[T any, L runtime.Object](ctx context.Context, what string, list List[L], options metav1.ListOptions) ([]T, error) {
	all, err := Listed[T](list(ctx, options))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return all, nil
}
