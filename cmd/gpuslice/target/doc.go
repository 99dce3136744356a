// Package target is the cluster that a question is about: what files say, what an API server says, or both.
package target
