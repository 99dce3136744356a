package doctor

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/claims"
)

// annotationRelease names the Helm release of an object.
const annotationRelease = "meta.helm.sh/release-name"

// reinstall is the command that restores objects of an installation: the one that it was installed with.
func (f *Facts) reinstall() string {
	if release, ok := f.release(); ok {
		return "helm upgrade " + release + " deploy/chart --namespace " + f.System + " --reset-then-reuse-values --wait"
	}
	if f.Installed() {
		return "kubectl apply --server-side -k OVERLAY, with the overlay of the installation (deploy/README.md)"
	}
	return "helm install gpuslice deploy/chart --namespace " + f.System + " --create-namespace --wait, with your images (deploy/README.md)"
}

// upgrade is the command that changes a value of the chart.
func (f *Facts) upgrade() string {
	release, _ := f.release()
	return "helm upgrade " + cmp.Or(release, "gpuslice") + " deploy/chart --namespace " + f.System + " --reset-then-reuse-values"
}

// release is the Helm release of the installation.
func (f *Facts) release() (string, bool) {
	var all []metav1.Object
	for _, o := range ours(f.Mutating) {
		all = append(all, o)
	}
	for _, o := range ours(f.Validating) {
		all = append(all, o)
	}
	if f.Deployment != nil {
		all = append(all, f.Deployment)
	}
	for _, o := range all {
		if name := o.GetAnnotations()[annotationRelease]; name != "" || o.GetLabels()[claims.LabelManagedBy] == "Helm" {
			return cmp.Or(name, "gpuslice"), true
		}
	}
	return "", false
}
