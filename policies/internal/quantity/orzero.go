package quantity

import "k8s.io/apimachinery/pkg/api/resource"

// OrZero reads a quantity of the installation's settings, which were validated when they were read.
func OrZero(text string) resource.Quantity {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}
	}
	return q
}
