package sbom

import "strings"

// Recognise returns the SPDX expression of the licences whose text is in a file, or Unknown. It knows those that Go
// modules have, by sentences that no other has.
func Recognise(text string) string {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	var found []string
	for _, l := range []struct{ id, has, lacks string }{
		{id: "Apache-2.0", has: "apache license"},
		{id: "MIT", has: "permission is hereby granted, free of charge, to any person obtaining a copy"},
		{id: "BSD-3-Clause", has: "neither the name"},
		{id: "BSD-2-Clause", has: "redistributions in binary form must reproduce", lacks: "neither the name"},
		{id: "ISC", has: "permission to use, copy, modify, and/or distribute this software for any purpose"},
		{id: "MPL-2.0", has: "mozilla public license"},
	} {
		if strings.Contains(text, l.has) && (l.lacks == "" || !strings.Contains(text, l.lacks)) {
			found = append(found, l.id)
		}
	}
	if len(found) == 0 {
		return Unknown
	}
	return strings.Join(found, " AND ")
}
