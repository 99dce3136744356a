package report

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

const (
	day = 24 * time.Hour
	// longest is the longest period.
	longest = 3651 * day
)

// period is a time of whole UTC days; until is now where a day is not over.
type period struct{ from, until time.Time }

// months are the parts of p in calendar months.
func (p period) months() (all []period) {
	for month := firstOfMonth(p.from); month.Before(p.until); month = month.AddDate(0, 1, 0) {
		all = append(all, period{later(p.from, month), earlier(p.until, month.AddDate(0, 1, 0))})
	}
	return all
}

func (p period) seconds() int64 { return int64(p.until.Sub(p.from) / time.Second) }

func firstOfMonth(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

var agoText = regexp.MustCompile(`^([0-9]{1,6})([mhdw])$`)

// parsePeriod reads --since and --until.
func parsePeriod(since, until string, now time.Time) (p period, err error) {
	now = now.UTC().Truncate(time.Second)
	p.until = now
	if until != "" {
		if p.until, err = parseTime("until", until, now); err != nil {
			return p, err
		}
		if _, isDate := parseDate(until); !isDate {
			p.until = earlier(p.until.Truncate(day).Add(day), now) // the whole day
		}
	}
	if p.from, err = parseTime("since", since, now); err != nil {
		return p, err
	}
	p.from = p.from.Truncate(day)
	switch {
	case !p.from.Before(p.until):
		return p, fmt.Errorf("--since %s: that is no earlier than the end of the report, %s", since, p.until.Format(time.RFC3339))
	case p.until.After(now):
		p.until = now
	}
	if p.until.Sub(p.from) > longest {
		return p, fmt.Errorf("--since %s: at most %d days", since, longest/day)
	}
	return p, nil
}

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

func parseDate(text string) (time.Time, bool) {
	t, err := time.Parse(time.DateOnly, text)
	return t, err == nil
}

func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if t, ok := parseDate(text); ok {
		return t, nil
	}
	parts := agoText.FindStringSubmatch(text)
	if parts == nil {
		return now, fmt.Errorf("--%s %q: accepted: a time before now such as 12h, 30d or 4w, or a date such as 2026-11-01", flag, text)
	}
	n, _ := strconv.Atoi(parts[1]) // six digits
	unit := map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": day, "w": 7 * day}[parts[2]]
	if ago := time.Duration(n); ago <= longest/unit {
		return now.Add(-ago * unit), nil
	}
	return now, fmt.Errorf("--%s %s: at most %d days", flag, text, longest/day)
}
