// Package plan finds the pool and strategy that a request fits, checks frameworks, guard, tiers and limits there, and
// builds the Promise. If nothing fits, a FitError for each pool gives the reason.
//
// # Tried and left
//
//   - A scheduler plugin that chooses device and pool when the pod is placed: it knows the free devices, which a webhook does
//     not. But managed control planes load no plugins, a second scheduler beside the first one gives the same GPU away twice,
//     and a pod that cannot fit would wait where it can be denied with the remedy. So the plan names all pools that give the
//     pod the very same (equivalent), and the scheduler that is there chooses among their nodes.
//   - The best pool over all strategies, by waste: a policy's author could not predict it. The order in the policy decides, and
//     waste only between pools of one strategy.
//   - A plan for each container by itself: a pod runs on one node, so that the containers of a candidate share a site.
//   - To merge what the author wrote for a framework with the cap: two settings of an allocator can contradict each other. The
//     author's stays whole, and the plan notes that there is no cap (internal/frameworks).
package plan
