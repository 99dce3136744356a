// Package suggestions writes Events on workloads whose slice is not the recommended one, where policy says sizing.suggest.
//
// The one idea: nothing is stored. A workload has its Event when the verdict is a week old (at risk: when it is reached), and again a day
// later, and so on while the verdict lasts; the Event's name is made of the workload and that time. So each Event is written once,
// whichever replica leads.
package suggestions
