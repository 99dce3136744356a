package doctor

import (
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
)

// alwaysPullImages is the admission plugin that sets the pull policy of every container, the guard's too.
const alwaysPullImages = "AlwaysPullImages"

// checkImagePulls looks for the admission plugin, with which each start of a pod pulls the guard's image with the
// credentials of the pod. Only the flags of an API server that runs as a pod show it.
func checkImagePulls(f *Facts) []Finding {
	if guard := installed.Guard(f.Deployment); guard == nil || guard.PullSecret != "" {
		return nil
	}
	found := newFinding(Note, "every pod pulls the guard's image at each start, with its own credentials: if the registry requires credentials, tenants' namespaces need them")
	for _, p := range f.APIServers {
		for _, c := range p.Spec.Containers {
			if plugins, _ := installed.Argument(c, "enable-admission-plugins"); strings.Contains(plugins, alwaysPullImages) {
				found = found.With(object("pod", p.Namespace, p.Name), "--enable-admission-plugins", alwaysPullImages)
			}
		}
	}
	return withEvidence(
		found.WithRemedy("name a pull secret that exists in tenants' namespaces: %s --set guard.image.pullSecret=NAME", f.upgrade()))
}
