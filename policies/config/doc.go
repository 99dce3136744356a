// Package config reads policy documents: the types of their fields, a strict decoder that reports every problem with its path,
// validation, what a tenant's own document tightens, and which document governs a namespace (Book).
package config
