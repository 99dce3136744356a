package doctor

// checkFlows looks for the share of the API server's attention that keeps the webhook's own writes from waiting behind
// the very pods that wait for them.
func checkFlows(f *Facts) []Finding {
	if f.unread(whatFlows) {
		return nil
	}
	if len(f.Flows) == 0 {
		return []Finding{
			newFinding(Warning, "there is no FlowSchema of gpuslice: under load its own writes wait behind the pods that wait for them").
				With("flowschemas", "", "none is labelled app.kubernetes.io/name: gpuslice").WithRemedy("%s", f.reinstall())}
	}
	ok := newFinding(OK, "the webhook's requests have a priority level of their own")
	for _, s := range f.Flows {
		ok = ok.With(object("flowschema", "", s.Name), "spec.priorityLevelConfiguration", s.Spec.PriorityLevelConfiguration.Name)
	}
	return []Finding{ok}
}
