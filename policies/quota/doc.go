// Package quota is the arithmetic of quotas: what a pod counts for (Charge, Holding), the parts of a budget (Scope), its limits, and
// where a pod does not fit (Excess). Sums saturate far below an overflow.
package quota
