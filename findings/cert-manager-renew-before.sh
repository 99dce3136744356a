#!/usr/bin/env bash
# One would expect: where an issuer hands out certificates that live for less than renewBefore, cert-manager says so or renews at once.
# What happens: a renewBefore of the certificate's life or longer counts for nothing, without a word: it is renewed after two thirds of
# its life, as if renewBefore were absent. One second less than the life is obeyed, and renews one second after the issue.
# github.com/cert-manager/cert-manager v1.21.2, pkg/util/pki/renewaltime.go (RenewalTime).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > go.mod <<'END'
module finding

go 1.26

require github.com/cert-manager/cert-manager v1.21.2
END
cat > main.go <<'END'
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/cert-manager/cert-manager/pkg/util/pki"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	issued := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	same := true
	for _, c := range []struct{ before, want time.Duration }{
		{30 * time.Minute, 30 * time.Minute},
		{time.Hour - time.Second, time.Second},
		{time.Hour, 40 * time.Minute},
		{65 * time.Minute, 40 * time.Minute},
	} {
		at, err := pki.RenewalTime(issued, issued.Add(time.Hour), &metav1.Duration{Duration: c.before}, nil, nil)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		got := at.Sub(issued)
		fmt.Printf("a certificate of 1h, renewBefore %-7s: renewed after %s\n", c.before, got)
		same = same && got == c.want
	}
	if !same {
		fmt.Println("CHANGED: the behaviour is another one")
		os.Exit(1)
	}
}
END
echo "github.com/cert-manager/cert-manager v1.21.2"
CGO_ENABLED=0 GOFLAGS=-mod=mod go run -trimpath . 2> err || { cat err; exit 1; }
