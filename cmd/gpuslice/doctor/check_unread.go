package doctor

// checkUnread reports what the checks could not look at.
func checkUnread(f *Facts) []Finding {
	if f.FromFiles {
		return missingFiles(f)
	}
	var all []Finding
	for _, u := range f.Unread {
		all = append(all, newFinding(Warning, "%s could not be read, so nothing is known about them", u.What).
			With("api server", "", u.Err.Error()).WithRemedy("run it again as a user who may read them"))
	}
	return all
}

// missingFiles reports what files do not hold.
func missingFiles(f *Facts) []Finding {
	if f.SettingsOnly {
		return nil
	}
	missing := newFinding(Note, "the files do not hold everything that is checked")
	for _, u := range f.Unread {
		missing = missing.With(u.What, "", "not in the files")
	}
	return withEvidence(missing.WithRemedy("%s\ngpuslice doctor -f dump", DumpCommand()))
}
