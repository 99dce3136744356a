package doctor

// check looks at the facts for one thing; it may find nothing.
type check struct {
	name string // stable: tools select by it
	find func(*Facts) []Finding
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

// examineCluster finds what a cluster offers, and the health of the installation if there is one.
func examineCluster(f *Facts) []Finding {
	all := run(f, cluster())
	if f.Installed() {
		return append(all, examineInstallation(f)...)
	}
	none := newFinding(Note, "gpuslice is not installed").With(object("namespace", "", f.System), "deployments", "none of gpuslice").
		WithRemedy("kubectl apply -f deploy/")
	none.Check = "installation"
	return append(all, none)
}

// examineInstallation finds the health of an installation.
func examineInstallation(f *Facts) []Finding { return run(f, installation()) }

func run(f *Facts, checks []check) []Finding {
	var all []Finding
	for _, c := range checks {
		for _, found := range c.find(f) {
			found.Check = c.name
			all = append(all, found)
		}
	}
	return all
}
