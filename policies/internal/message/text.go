package message

import (
	"fmt"
	"strconv"
	"strings"
)

func JoinNames[T ~string](names []T) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	return strings.Join(texts, ", ")
}

// Quote quotes text for a message, cut so that a hostile value cannot fill a log.
func Quote(text string) string {
	const most = 48
	if len(text) <= most {
		return strconv.Quote(text)
	}
	return strconv.Quote(text[:most]) + "..."
}

// ShortList joins the first texts, and counts the rest.
func ShortList(texts []string) string {
	const most = 6
	if len(texts) > most {
		texts = append(texts[:most:most], fmt.Sprintf("and %d more", len(texts)-most))
	}
	return strings.Join(texts, "; ")
}
