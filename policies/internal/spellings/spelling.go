package spellings

import "github.com/gpuslice/gpuslice/policies/internal/size"

// Spelling is a foreign way to request a slice, read where policy lists its name under accept.
type Spelling struct {
	Name string
	Doc  string
	// Read returns what the spelling requests for one container; ok is false where it says nothing. text is what was
	// written and where, for messages.
	Read func(Resource) (found size.Size, text string, ok bool)
}

// All lists the spellings of other systems, one file each.
func All() []Spelling {
	return []Spelling{fractionalQuantity()}
}

// Names are the accepted values of a policy's accept list.
func Names() []string {
	var names []string
	for _, s := range All() {
		names = append(names, s.Name)
	}
	return names
}
