// Package request reads a pod's request: labels, the annotation for single containers, resources and accepted
// spellings.
package request
