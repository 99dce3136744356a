// Package usage counts pods' holdings of GPUs over time, and the part that they use, for reports and chargeback.
//
//	pods that hold GPUs (watch of the leader) -> held (pod.go) -> Day.plus, a pure function (day.go) -> ConfigMap per UTC day (store.go)
//
// The one idea: a Day names the second up to which it is counted, and is written only over the version that was read.
// So each second is counted once, whoever counts: a replica that starts again, or two that lead for a moment. Holdings
// while nobody watched are counted by the times when pods started and terminated; of pods that went meanwhile the end is not
// known, and the Day names that time as unread, with the most that they can have held. Nothing is invented. A watch
// that breaks while a replica leads is not such a time: pods that come and go before it is there again are counted
// nowhere.
//
// A pod without a promise in a governed namespace holds the GPUs that it requests as resources. GPUs from claims of its
// own are counted nowhere.
//
// A pod holds its slice from when the scheduler binds it to a node until its last container has terminated.
package usage
