// Package problem is how errors about documents are named and printed: what reads documents needs it without the rest of a command line.
package problem

import "errors"

// ErrInternal marks errors that no input should be able to cause.
var ErrInternal = errors.New("internal error, please report it together with the document")

// Place is where an object is in the input.
type Place struct {
	Source   string `json:"source"`
	Document int    `json:"document,omitempty"` // from 1
	Item     int    `json:"item,omitempty"`     // of a list, from 1
}

// Error is a document that could not be answered.
type Error struct {
	Place
	Message string `json:"message"`
}
