package doctor

// checkUnread reports what the checks could not look at.
func checkUnread(f *Facts) []Finding {
	var all []Finding
	for _, u := range f.Unread {
		all = append(all, newFinding(Warning, "%s could not be read, so nothing is known about them", u.What).
			With("api server", "", u.Err.Error()).WithRemedy("run it again as a user who may read them"))
	}
	return all
}
