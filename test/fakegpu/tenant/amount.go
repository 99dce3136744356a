package main

import (
	"fmt"
	"strconv"
	"strings"
)

// parseMiB reads an amount such as "4Gi", "512Mi" or "9.5Gi" in MiB.
func parseMiB(text string) (int64, error) {
	number, factor := strings.CutSuffix(text, "Gi")
	scale := 1024.0
	if !factor {
		if number, factor = strings.CutSuffix(text, "Mi"); !factor {
			return 0, fmt.Errorf("%q is no amount in Mi or Gi", text)
		}
		scale = 1
	}
	amount, err := strconv.ParseFloat(number, 64)
	if err != nil || amount < 0 || amount > 1<<20 {
		return 0, fmt.Errorf("%q is no amount in Mi or Gi", text)
	}
	return int64(amount * scale), nil
}
