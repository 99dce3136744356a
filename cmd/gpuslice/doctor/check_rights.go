package doctor

// wanted are the rights that an installation takes.
func wanted(system string) []Right {
	return []Right{
		{Verb: "create", Resource: "namespaces"},
		{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
		{Verb: "create", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"},
		{Verb: "delete", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"},
		{Verb: "create", Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"},
		{Verb: "delete", Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"},
		{Verb: "create", Group: "apps", Resource: "deployments", Namespace: system},
		{Verb: "create", Resource: "configmaps", Namespace: system},
		{Verb: "create", Resource: "secrets", Namespace: system},
	}
}

func checkRights(f *Facts) []Finding {
	if len(f.Rights) == 0 {
		return nil
	}
	missing := newFinding(Warning, "you may not do all that installing and removing gpuslice takes")
	if f.Installed() {
		missing.Level = Note
	}
	for _, r := range f.Rights {
		if !r.Allowed {
			missing = missing.With(r.Verb+" "+r.Resource, "allowed", "false")
		}
	}
	if len(missing.Evidence) > 0 {
		return []Finding{missing.WithRemedy("contact a cluster administrator; kubectl auth can-i --list shows what you may do")}
	}
	return []Finding{newFinding(OK, "you may install and remove gpuslice")}
}
