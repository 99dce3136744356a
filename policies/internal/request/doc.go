// Package request reads what a pod requests: labels, the annotation for single containers, resources and accepted spellings.
package request
