// Package quota is the arithmetic of quotas: a pod's charge (Charge, Holding), the parts of a budget (Scope), its
// limits, and the limits that a pod exceeds (Excess). Sums saturate far below an overflow.
package quota
