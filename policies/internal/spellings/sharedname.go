package spellings

// NameOfShares is the name of the spelling that a resource's name alone is.
const NameOfShares = "shared-name"

// sharedName is read where pools are known: which resources are shares of a device depends on them.
func sharedName() Spelling {
	return Spelling{Name: NameOfShares,
		Doc: "nvidia.com/gpu.shared: 1, or another name of shares, means a slice although nothing else requests one"}
}
