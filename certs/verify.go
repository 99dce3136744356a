package certs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"
)

// finding is the result of checking a certificate against the live configurations; nil: it could not be checked.
type finding struct {
	rejections []error   // entries that would not accept it
	ends       time.Time // when the first authority expires by which one does; zero: nobody calls
}

func (f *finding) err() error {
	if f == nil || len(f.rejections) == 0 {
		return nil
	}
	return fmt.Errorf("the API server would not accept the certificate: %w", errors.Join(f.rejections...))
}

// verify checks a certificate against every entry. Without one there is nothing to find.
func verify(live []configuration, served *tls.Certificate, now time.Time) *finding {
	if served == nil {
		return nil
	}
	f := &finding{}
	for _, one := range live {
		for _, h := range one.hooks {
			end, err := accepts(h.bundle, h.host, served, now)
			if err != nil {
				f.rejections = append(f.rejections, fmt.Errorf("webhook %s of %s: %w", h.name, one.name, err))
			} else if f.ends.IsZero() || end.Before(f.ends) {
				f.ends = end
			}
		}
	}
	return f
}
