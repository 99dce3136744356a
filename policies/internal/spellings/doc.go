// Package spellings reads requests in the words of other systems, one file each. A policy lists those that it accepts; a pod that
// uses another one is answered with what to write instead.
package spellings
