// Package finding is what doctor and verify say: a level, a sentence, the evidence, and the command that mends it.
package finding
