// Package config reads policy documents: the types of their fields, a strict decoder that reports every problem with
// its path, validation, the tightening by a tenant's own document, and the choice of a namespace's document (Book).
package config
