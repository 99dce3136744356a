// Package spellings reads requests in the words of other systems, one file each. A policy lists those that it accepts;
// for a pod that uses another one, the answer contains the accepted spelling.
package spellings
