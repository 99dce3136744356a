package doctor

// check looks at the facts for one thing; it may find nothing.
type check struct {
	name string // stable: tools select by it
	find func(*Facts) []Finding
}

// cluster are the checks of a cluster, in the order of questions about it.
func cluster() []check {
	return []check{
		{"kubernetes-version", checkVersion},
		{"webhook-version", checkWebhookVersion},
		{"gpu-nodes", checkNodes},
		{"gpu-labels", checkLabels},
		{"drivers", checkDrivers},
		{"device-plugin", checkPlugin},
		{"cluster-policy", checkClusterPolicy},
		{"plugin-config", checkPluginConfig},
		{"plugin-selection", checkPluginSelection},
		{"sharing", checkSharing},
		{"replica-size", checkReplicaSize},
		{"unused-replicas", checkUnusedReplicas},
		{"allocation-policy", checkAllocationPolicy},
		{"granular-pools", checkGranularPools},
		{"accelerator-labels", checkAcceleratorLabels},
		{"node-overlays", checkNodeOverlays},
		{"device-classes", checkDeviceClasses},
		{"open-classes", checkOpenClasses},
		{"outage-claims", checkOutageClaims},
		{"uncounted-shares", checkUncountedShares},
		{"two-offers", checkTwoOffers},
		{"held-twice", checkHeldTwice},
		{"other-plugins", checkOtherPlugins},
		{"unclaimable-devices", checkUnclaimableDevices},
		{"claim-amounts", checkClaimAmounts},
		{"waiting-claims", checkWaitingClaims},
		{"mps-daemon", checkMPS},
		{"mps-clients", checkMPSClients},
		{"mps-pipe", checkMPSPipe},
		{"mig", checkMIG},
		{"mig-config", checkMIGConfig},
		{"mig-strategy", checkMIGStrategy},
		{"unused-instances", checkUnusedInstances},
		{"visible-devices", checkVisibleDevices},
		{"guard-access", checkGuardAccess},
		{"agents", checkAgents},
		{"guard-failures", checkGuardFailures},
		{"driver-limits", checkDriverLimits},
		{"governed-software", checkGovernedSoftware},
		{"pod-security", checkPodSecurity},
		{"other-mutators", checkMutators},
		{"quotas", checkQuotas},
		{"uncounted-quotas", checkUncountedQuotas},
		{"env-files", checkEnvFiles},
		{"limit-ranges", checkLimitRanges},
		{"image-pulls", checkImagePulls},
		{"namespace-labels", checkNamespaceLabels},
		{"platform", checkPlatform},
		{"rights", checkRights},
		{"unread", checkUnread},
	}
}

// installation are the checks of the installation.
func installation() []check {
	return []check{
		{"webhooks", checkWebhooks},
		{"authority", checkAuthority},
		{"certificates", checkCertificates},
		{"ca-injector", checkInjector},
		{"replicas", checkReplicas},
		{"policies", checkPolicies},
		{"last-line", checkLastLine},
		{"priority", checkFlows},
	}
}

// examineCluster returns findings on a cluster, and the health of the installation if there is one.
func examineCluster(f *Facts) []Finding {
	all := run(f, cluster())
	if f.Installed() {
		return append(all, examineInstallation(f)...)
	}
	if f.unread(whatWebhook) || f.unread(whatWebhooks) {
		return all
	}
	return append(all, f.notInstalled(Note))
}

// examineInstallation finds the health of an installation.
func examineInstallation(f *Facts) []Finding { return run(f, installation()) }

// notInstalled is the finding that there is no installation, with what one has left.
func (f *Facts) notInstalled(level Level) Finding {
	where, remedy := object("namespace", "", f.System), f.reinstall()
	none := newFinding(level, "gpuslice is not installed").With(where, "deployments", "none of gpuslice")
	if n := len(f.Policies); n > 0 {
		none, remedy = none.With(where, "policies that govern nothing", decimal(n)), remedy+"\nor remove what is left: gpuslice uninstall"
	}
	none.Check = "installation"
	return none.WithRemedy("%s", remedy)
}

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
