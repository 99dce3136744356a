package doctor

// checkUnread reports objects that the checks could not read.
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

// missingFiles reports objects that the files do not contain.
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
