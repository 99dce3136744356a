// Package sizing estimates the slice that a workload needs, from its observed GPU memory.
//
// # Method
//
// A process that exceeds its limit is terminated, so that a percentile or a mean is no basis for a limit, and most workloads exceed
// their peak so far sooner or later. By how much is learned from other workloads: each one whose history is long enough is cut in
// two, which gives a Pair, the peak before the cut and the peak after it. The size at a stated
// coverage is then a bound from full conformal prediction: of all the peaks that a workload could reach next, those are left
// out whose residual would be among the largest 1-coverage of all residuals.
//
//	V. Vovk, A. Gammerman, G. Shafer: Algorithmic Learning in a Random World, 2nd ed. 2022, chapters 2 and 4
//	E. Burnaev, V. Vovk: Efficiency of Conformalized Ridge Regression, COLT 2014
//
// The residual is that of a ridge regression of log(after/before) on log(before). Its slope lets a fleet of workloads
// that all end at about the same peak give a workload with a low peak more room than one that has reached its peak; in
// a mixed fleet the slope is about zero, and a factor on the peak so far remains. The bound holds for any distribution,
// as long as workloads are exchangeable: none of them is known to differ from those that it is compared with. For that
// reason a group (a namespace) with enough workloads is compared with itself. With n others, n+1 times the coverage
// must not exceed n: 95 % needs 19 of them, 99 % 99. If there are fewer, a built-in table stands in, or the largest
// factor of those that there are, if that is larger.
//
// # Limits
//
// A peak whose cause is not in the history: another model, a release, the end of a month. The need of a workload that
// takes all the memory it is given does not show in its peak. A history under a limit is cut off at the limit. Marks
// name the observed signs of this.
package sizing
