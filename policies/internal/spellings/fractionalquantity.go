package spellings

// NameOfQuantities is the name of the spelling that is read from a GPU resource itself.
const NameOfQuantities = "fractional-quantity"

// fractionalQuantity is nvidia.com/gpu: "0.25". The API server takes it on a bare pod only because admission
// rewrites it before validation; in a workload's template it is denied (CheckTemplate).
func fractionalQuantity() Spelling {
	return Spelling{
		Name: NameOfQuantities,
		Doc:  `nvidia.com/gpu: "0.25" means that share of one GPU`,
	}
}
