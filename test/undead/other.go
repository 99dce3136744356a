//go:build !amd64

package undead

import "errors"

// EndThreads is not there on this processor.
func EndThreads(int) error { return errors.ErrUnsupported }
