package cluster

import "fmt"

// Bounds on a replica's copies of namespaces: their authors choose how many labels they have.
const (
	MaxLabels     = 16 << 10 // bytes of a namespace's labels
	MaxNamespaces = 64 << 20 // bytes of all namespaces
)

// LabelsNotRead is a label of namespaces whose labels are not kept. No namespace has a label without a name.
const LabelsNotRead = ""

// errLabelsNotRead is why no policy can be chosen for a namespace.
var errLabelsNotRead = fmt.Errorf("the namespace's labels have more than %d KiB, or those of all namespaces more than %d MiB, "+
	"and policies choose namespaces by labels: remove labels", MaxLabels>>10, MaxNamespaces>>20)
