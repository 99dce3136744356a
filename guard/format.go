package guard

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// FormatBytes returns a number of bytes with at most one decimal and its unit, as
// "9.1Gi".
func FormatBytes(bytes int64) string {
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}
	amount, unit := float64(bytes), 0
	for amount >= 1024 && unit < len(units)-1 {
		amount, unit = amount/1024, unit+1
	}
	return strings.TrimSuffix(strconv.FormatFloat(amount, 'f', 1, 64), ".0") + units[unit]
}

// share returns "9.1Gi of 8Gi", in MiB where the two would read the same.
func share(used, limit int64) string {
	if used != limit && FormatBytes(used) == FormatBytes(limit) {
		return fmt.Sprintf("%dMi of %dMi", (used+1<<20-1)>>20, limit>>20)
	}
	return FormatBytes(used) + " of " + FormatBytes(limit)
}

// count returns "1 process", "2 processes".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// FormatDuration returns a duration in seconds with at most one decimal, as
// "3.2s".
func FormatDuration(d time.Duration) string {
	return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + "s"
}

// FormatPeriod returns a duration of minutes and hours, as "8h" or "1h30m", and a
// shorter one as FormatDuration does.
func FormatPeriod(d time.Duration) string {
	if d < time.Minute {
		return FormatDuration(d.Truncate(time.Second))
	}
	text := strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
	if whole, found := strings.CutSuffix(text, "h0m"); found {
		return whole + "h"
	}
	return text
}
