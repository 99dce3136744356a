package spellings

import "github.com/gpuslice/gpuslice/policies/internal/quantity"

// Resource is a GPU resource as a container names it.
type Resource struct {
	Name  string
	Count int64             // whole units; 0 if Share has the part of one
	Share quantity.Fraction // a fraction of one unit
	Text  string            // the quantity as written
}
