// Package document reads YAML documents as people write them: bounded before they are parsed, strictly, and with every problem
// at once, each with its path and line.
package document
