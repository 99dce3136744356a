// Package visibility is device visibility: which containers take devices by their variables alone, and how that is prevented.
package visibility
