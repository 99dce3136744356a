package doctor

import "github.com/gpuslice/gpuslice/cmd/gpuslice/finding"

// check looks at the facts for one thing. It finds nothing where there is nothing to say.
type check struct {
	name string // stable: tools select by it
	look func(*Facts) []finding.Finding
}

// cluster are the checks of what a cluster offers, in the order in which one asks.
func cluster() []check {
	return []check{
		{"kubernetes-version", checkVersion},
		{"gpu-nodes", checkNodes},
		{"gpu-labels", checkLabels},
		{"drivers", checkDrivers},
		{"device-plugin", checkPlugin},
		{"sharing", checkSharing},
		{"mps-daemon", checkMPS},
		{"mig", checkMIG},
		{"visible-devices", checkVisibleDevices},
		{"pod-security", checkPodSecurity},
		{"other-mutators", checkMutators},
		{"quotas", checkQuotas},
		{"platform", checkPlatform},
		{"rights", checkRights},
		{"unread", checkUnread},
	}
}

// installation are the checks of what is installed.
func installation() []check {
	return []check{
		{"webhooks", checkWebhooks},
		{"authority", checkAuthority},
		{"replicas", checkReplicas},
		{"policies", checkPolicies},
		{"last-line", checkLastLine},
		{"priority", checkFlows},
	}
}

// Cluster finds what a cluster offers, and how the installation does where there is one.
func Cluster(f *Facts) []finding.Finding {
	all := look(f, cluster())
	if f.Installed() {
		return append(all, Installation(f)...)
	}
	none := finding.New(finding.Note, "gpuslice is not installed").With(object("namespace", "", f.System), "deployments", "none of gpuslice").
		MendBy("kubectl apply -f deploy/")
	none.Check = "installation"
	return append(all, none)
}

// Installation finds how an installation does.
func Installation(f *Facts) []finding.Finding { return look(f, installation()) }

func look(f *Facts, checks []check) []finding.Finding {
	var all []finding.Finding
	for _, c := range checks {
		for _, found := range c.look(f) {
			found.Check = c.name
			all = append(all, found)
		}
	}
	return all
}
