package policies

// Spelling is a foreign way to ask for a slice, read where policy lists its name under accept.
type Spelling struct {
	Name string
	Doc  string
	// Read returns what the spelling asks of one container; ok is false where it says nothing. text is what was
	// written and where, for messages.
	Read func(GPUResource) (ask Ask, text string, ok bool)
}

// Spellings lists the foreign spellings, one file each.
func Spellings() []Spelling {
	return []Spelling{fractionalQuantity()}
}

// spellingNames are the accepted values of a policy's accept list.
func spellingNames() []string {
	var names []string
	for _, s := range Spellings() {
		names = append(names, s.Name)
	}
	return names
}

// GPUResource is a GPU resource as a container names it.
type GPUResource struct {
	Name  string
	Count int64    // whole units; 0 where Share says how much of one
	Share Fraction // a fraction of one unit
	Text  string   // the quantity as written
}
