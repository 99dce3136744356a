package doctor

import (
	"strings"

	semver "k8s.io/apimachinery/pkg/util/version"
)

// labelVersion holds the version of a chart that pins the image by its digest alone.
const labelVersion = "app.kubernetes.io/version"

// checkWebhookVersion compares the version of this program with that of the webhook: by the tag of its image, or else by the label.
func checkWebhookVersion(f *Facts) []Finding {
	if f.Deployment == nil || f.Program == "" || len(f.Deployment.Spec.Template.Spec.Containers) == 0 {
		return nil
	}
	image := f.Deployment.Spec.Template.Spec.Containers[0].Image
	version := tag(image)
	if _, err := semver.ParseGeneric(version); err != nil { // "latest", "test" and the like show none
		version = f.Deployment.Labels[labelVersion]
	}
	where := "deployment/" + f.Deployment.Namespace + "/" + f.Deployment.Name
	switch {
	case version == "":
		return []Finding{newFinding(OK, "gpuslice %s, and a webhook of unknown version", f.Program).With(where, "image", image)}
	case plainVersion(version) != plainVersion(f.Program):
		return []Finding{newFinding(Note, "this program is gpuslice %s and the webhook %s: they may decide differently", f.Program, version).
			With(where, "image", image)}
	}
	return []Finding{newFinding(OK, "gpuslice %s, and so is the webhook", f.Program)}
}

// plainVersion is a version for comparison: a label holds no "+".
func plainVersion(version string) string {
	return strings.ReplaceAll(strings.TrimPrefix(version, "v"), "+", "_")
}

// tag is the tag of an image; "": it has none.
func tag(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return name[i+1:]
	}
	return ""
}
