package frameworks

// compiled is a profile with its texts parsed.
type compiled struct {
	Profile
	images       []pattern
	commands     [][]string
	versions     []versionRule
	believe      bounds
	shim         bounds
	runs         *compiled
	runsVersions []versionRule
	runsSteps    []step
	ruleBounds   []bounds
	conf         map[string]allocEntry
	confOldest   version
}

func named(table []*compiled, name string) *compiled {
	for _, p := range table {
		if p.Name == name {
			return p
		}
	}
	return nil
}
