package doctor

import (
	"github.com/gpuslice/gpuslice/cmd/gpuslice/finding"
)

// checkUnread says what the checks could not look at.
func checkUnread(f *Facts) []finding.Finding {
	var all []finding.Finding
	for _, u := range f.Unread {
		all = append(all, finding.New(finding.Warning, "%s could not be read, so nothing is said about them", u.What).
			With("api server", "", u.Err.Error()).MendBy("ask again as somebody who may read them"))
	}
	return all
}
