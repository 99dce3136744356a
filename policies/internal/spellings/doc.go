// Package spellings reads requests in the words of other systems, one file each. A policy lists those that it accepts.
package spellings
