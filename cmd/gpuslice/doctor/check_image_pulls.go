package doctor

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/installed"
)

// alwaysPullImages is the admission plugin that changes the pull policy of every container.
const alwaysPullImages = "AlwaysPullImages"

// checkImagePulls looks for the admission plugin that changes the guard's containers. Only the flags of an API server
// that runs as a pod show it.
func checkImagePulls(f *Facts) []Finding {
	guard := installed.Guard(f.Deployment)
	if guard == nil || guard.PullPolicy == corev1.PullAlways {
		return nil
	}
	found := newFinding(Warning, "the API server changes the pull policy of every container to Always, the guard's too")
	for _, p := range f.APIServers {
		for _, c := range p.Spec.Containers {
			if plugins, _ := flagOf(c, "enable-admission-plugins"); strings.Contains(plugins, alwaysPullImages) {
				found = found.With(object("pod", p.Namespace, p.Name), "--enable-admission-plugins", alwaysPullImages)
			}
		}
	}
	return withEvidence(found.WithRemedy("set the pull policy that comes out anyway, by the chart's value guard.image.pullPolicy=Always: %s --set guard.image.pullPolicy=Always", f.upgrade()))
}
