package ops

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// figures are what the tests measured, for the table at the end.
var figures struct {
	sync.Mutex
	rows [][3]string
}

// figure keeps a figure for the table.
func figure(of, what, format string, args ...any) {
	figures.Lock()
	defer figures.Unlock()
	figures.rows = append(figures.rows, [3]string{of, what, fmt.Sprintf(format, args...)})
}

// printFigures prints the table, where there is one to print.
func printFigures() {
	figures.Lock()
	defer figures.Unlock()
	if !long() || len(figures.rows) == 0 {
		return
	}
	slices.SortStableFunc(figures.rows, func(a, b [3]string) int { return slices.Compare(a[:1], b[:1]) })
	fmt.Println()
	for _, row := range figures.rows {
		fmt.Printf("%-24s %-58s %s\n", row[0], row[1], row[2])
	}
}

// quantile is the value that so many percent of the times do not exceed.
func quantile(times []time.Duration, percent int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

// brief is a duration as the table shows it.
func brief(d time.Duration) string {
	if d < time.Second {
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
