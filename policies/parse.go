package policies

import "k8s.io/apimachinery/pkg/util/validation/field"

// ParsePolicy reads a policy document: strict and case-sensitive, defaults filled in, every problem reported with its
// path. name says where it came from ("namespace/configmap"). A document with problems gives no Policy.
func ParsePolicy(name string, data []byte) (*Policy, field.ErrorList) {
	return nil, nil
}
