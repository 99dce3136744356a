package budgets

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

const (
	maxHolders    = 3  // pods that a denial names
	maxHolderName = 63 // bytes of a name in a denial
)

// withHolders is the excess of a denied request, the first with a note about the remaining amount and the holders of
// the rest. It names only pods of the request's own namespace: other tenants may share the budget.
func withHolders(request ledger.Request, answer ledger.Answer) []quota.Excess {
	excess := slices.Clone(answer.Excess)
	if len(excess) == 0 {
		return excess
	}
	shared := len(request.Budget.Namespaces) > 1
	amount, text := request.Quota.Measure(excess[0])
	notes := []string{excess[0].Dimension + " left: " + excess[0].Left}
	if held := largest(answer.Pods, amount); len(held) > 0 {
		whose := "most"
		if shared {
			whose = "most of " + request.Holding.Namespace + "'s part"
		}
		notes = append(notes, whose+" is held by "+inShort(held, func(p ledger.Pod) string {
			return shorten.Text(p.Name, maxHolderName) + " " + text(amount(p.Holding))
		}))
	}
	if shared {
		notes = append(notes, "the budget is shared with other namespaces")
	}
	if note := reservedNote(answer.Reserved, request.Name, amount, text); note != "" {
		notes = append(notes, note)
	}
	excess[0].Note = strings.Join(notes, "; ")
	return excess
}

// largest are the pods that hold any of it, the one that holds most first.
func largest(pods []ledger.Pod, amount func(quota.Holding) int64) []ledger.Pod {
	held := slices.DeleteFunc(slices.Clone(pods), func(p ledger.Pod) bool { return amount(p.Holding) <= 0 })
	slices.SortFunc(held, func(a, b ledger.Pod) int {
		return cmp.Or(cmp.Compare(amount(b.Holding), amount(a.Holding)), cmp.Compare(a.Name, b.Name))
	})
	return held
}

// reservedNote describes the part of the usage that is reserved for pods that were admitted and do not exist, for
// instance because one of the same name did, and until when. Reservations of the request's own name do not count
// against it.
func reservedNote(reserved []ledger.Reservation, name string, amount func(quota.Holding) int64, text func(int64) string) string {
	most := map[string]int64{}
	var until time.Time
	for _, r := range reserved {
		if n := amount(r.Holding); n > 0 && r.Name != name {
			most[r.Name] = max(most[r.Name], n)
			until = latest(until, r.CreatedAt.Add(ledger.ReservationTTL))
		}
	}
	if len(most) == 0 {
		return ""
	}
	var sum int64
	names := make([]string, 0, len(most))
	for name, n := range most {
		sum += n
		names = append(names, name)
	}
	slices.Sort(names)
	return fmt.Sprintf(
		"%s of what is used is reserved for pods that were admitted and are not listed, %s: try again in a few seconds, or at %s at the latest",
		text(sum), inShort(names, func(name string) string { return shorten.Text(name, maxHolderName) }), until.UTC().Format(time.RFC3339))
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// inShort joins the first of a list, and counts the rest.
func inShort[T any](list []T, text func(T) string) string {
	var texts []string
	for _, e := range list[:min(len(list), maxHolders)] {
		texts = append(texts, text(e))
	}
	if more := len(list) - maxHolders; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}
