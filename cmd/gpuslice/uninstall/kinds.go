package uninstall

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// keep lists the parts of an installation that stay, so that one after it can go on.
type keep struct {
	policies bool // with the namespace that holds them
	keys     bool // by which living pods' slices are known
}

// kind is a kind of object that an installation has.
type kind struct {
	resource   schema.GroupVersionResource
	namespaced bool // only those of the system namespace are ours
	// also reports whether an object without our label is ours, by a label or name of its own.
	also func(name string, labels map[string]string) bool
}

func (k kind) String() string {
	if stem, ok := strings.CutSuffix(k.resource.Resource, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(k.resource.Resource, "s")
}

// kinds lists the kinds to remove, in this order: first the configurations by which the API server calls the webhook,
// so that nothing can be denied; then the servers, so that nothing is created again; then their remains.
func kinds() []kind {
	clusterScoped := func(group, version, resource string) kind {
		return kind{resource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}}
	}
	system := func(group, version, resource string) kind {
		return kind{resource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, namespaced: true}
	}
	configMaps, secrets, leases := system("", "v1", "configmaps"), system("", "v1", "secrets"), system("coordination.k8s.io", "v1", "leases")
	configMaps.also, secrets.also, leases.also = configMapOfOurs, named, named
	return []kind{
		clusterScoped("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"),
		clusterScoped("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"),
		clusterScoped("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings"),
		clusterScoped("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"),
		system("apps", "v1", "deployments"),
		system("apps", "v1", "daemonsets"),
		system("policy", "v1", "poddisruptionbudgets"),
		system("", "v1", "services"),
		system("networking.k8s.io", "v1", "networkpolicies"),
		system("monitoring.coreos.com", "v1", "servicemonitors"),
		system("monitoring.coreos.com", "v1", "podmonitors"),
		system("monitoring.coreos.com", "v1", "prometheusrules"),
		system("cert-manager.io", "v1", "certificates"),
		system("cert-manager.io", "v1", "issuers"),
		clusterScoped("rbac.authorization.k8s.io", "v1", "clusterrolebindings"),
		clusterScoped("rbac.authorization.k8s.io", "v1", "clusterroles"),
		system("rbac.authorization.k8s.io", "v1", "rolebindings"),
		system("rbac.authorization.k8s.io", "v1", "roles"),
		system("", "v1", "serviceaccounts"),
		clusterScoped("flowcontrol.apiserver.k8s.io", "v1", "flowschemas"),
		clusterScoped("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations"),
		system("", "v1", "resourcequotas"),
		leases, configMaps, secrets,
	}
}

// named reports whether gpuslice created an object itself: it sets no label, but begins every name like this.
func named(name string, _ map[string]string) bool {
	return strings.HasPrefix(name, "gpuslice-")
}

// configMapOfOurs does the same for ConfigMaps: state, ledgers and policies.
func configMapOfOurs(name string, labels map[string]string) bool {
	return labels[api.LabelPolicy] == "true" || labels[ledger.Label] == "true" || name == cluster.StateName || named(name, labels)
}
