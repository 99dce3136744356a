package api

import "k8s.io/apimachinery/pkg/util/validation/field"

// Violation is one reason to deny a pod. Rule and Reason are stable (metrics, audit); Detail is for people: the
// request, the available choices, and the next step.
type Violation struct {
	Rule   Rule   `json:"rule"`
	Reason string `json:"reason"`
	Detail string `json:"detail"`
	// Field is the path of the first field at fault, such as "metadata.labels[gpuslice.dev/memory]". "": the fault is not in the object.
	Field string `json:"field,omitempty"`
	// Container is the name of the container in which Field is a path, until a Decision gives it the container's index: the pod
	// under judgement may lack containers of the pod that its author sent.
	Container string `json:"-"`
}

// String is the sentence that the user reads.
func (v Violation) String() string {
	if v.Detail == "" {
		return v.Reason
	}
	return v.Reason + ": " + v.Detail
}

// LabelField is the path of a pod's label.
func LabelField(name string) string { return field.NewPath("metadata", "labels").Key(name).String() }

// AnnotationField is the path of a pod's annotation.
func AnnotationField(name string) string {
	return field.NewPath("metadata", "annotations").Key(name).String()
}
