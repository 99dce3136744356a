package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Label is on every ConfigMap that is a ledger, with the value "true".
const Label = "gpuslice.dev/ledger"

// documentVersion is the version that this build writes and reads.
const documentVersion = 1

// maxDocument bounds a ledger: the API server limits the whole object to 1 MiB.
const maxDocument = 900 << 10

// maxReservations bounds the reservations of one budget. With names of usual length they stay far below maxDocument.
const maxReservations = 2048

// ErrFull is returned for a ledger that has reached its bounds.
var ErrFull = errors.New("the ledger is full")

// document is the stored form of a ledger.
type document struct {
	Version int    `json:"version"`
	Budget  string `json:"budget"` // its key, for people and to detect a collision of names
	State
}

// NamePrefix is the prefix of the name of every ledger.
const NamePrefix = "gpuslice-ledger-"

// ObjectName returns the name of a budget's ledger.
func ObjectName(budgetKey string) string {
	hash := sha256.Sum256([]byte(budgetKey))
	return NamePrefix + hex.EncodeToString(hash[:10])
}

// Encode returns the stored form of a budget's ledger. It returns ErrFull for one that is too large.
func Encode(budgetKey string, s State) ([]byte, error) {
	data, err := json.Marshal(document{documentVersion, budgetKey, s})
	if err != nil {
		return nil, fmt.Errorf("encode ledger %s: %w", budgetKey, err)
	}
	if len(data) > maxDocument || len(s.Reservations) > maxReservations {
		return nil, fmt.Errorf("encode ledger %s of %d bytes and %d reservations: %w", budgetKey, len(data), len(s.Reservations), ErrFull)
	}
	return data, nil
}

// Decode returns a stored ledger and the key of its budget. It returns an error for one that is too large, malformed, of
// another version or with negative counts.
func Decode(data []byte) (budgetKey string, s State, err error) {
	if len(data) > maxDocument {
		return "", State{}, fmt.Errorf("decode ledger: longer than %d bytes", maxDocument)
	}
	var d document
	decoder := json.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&d); err != nil {
		return "", State{}, fmt.Errorf("decode ledger: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return "", State{}, errors.New("decode ledger: trailing data")
	}
	if d.Version != documentVersion {
		return "", State{}, fmt.Errorf("decode ledger: version %d, this build reads %d", d.Version, documentVersion)
	}
	if err := d.check(); err != nil {
		return "", State{}, fmt.Errorf("decode ledger %s: %w", d.Budget, err)
	}
	return d.Budget, d.State, nil
}

// check rejects a ledger that gpuslice cannot have written: it would admit pods over the quota.
func (d document) check() error {
	if len(d.Reservations) > maxReservations {
		return fmt.Errorf("%d reservations, at most %d are allowed", len(d.Reservations), maxReservations)
	}
	for _, h := range d.Base {
		if !h.Sound() {
			return fmt.Errorf("negative or overflowing base of namespace %q", h.Namespace)
		}
	}
	for _, r := range d.Reservations {
		if r.PodUID == "" {
			return fmt.Errorf("reservation for pod %s/%s without a UID", r.Holding.Namespace, r.Name)
		}
		if !r.Holding.Sound() {
			return fmt.Errorf("negative or overflowing reservation for pod %s/%s", r.Holding.Namespace, r.Name)
		}
	}
	return nil
}
