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

// Label marks the ConfigMaps that are ledgers; its value is "true".
const Label = "gpuslice.dev/ledger"

// documentVersion is the version of the document that this build writes and reads.
const documentVersion = 1

// maxDocument bounds a ledger, which the API server holds to 1 MiB with everything around it.
const maxDocument = 900 << 10

// maxReservations bounds what is in flight in one budget: with names of usual length it stays far below maxDocument.
const maxReservations = 2048

// ErrFull says that a ledger has grown beyond its bounds, so that nothing can be added.
var ErrFull = errors.New("the ledger is full")

// document is the ledger as it is stored.
type document struct {
	Version int    `json:"v"`
	Budget  string `json:"budget"` // its key, for people and to find a collision of names
	State
}

// NamePrefix begins the name of every ledger.
const NamePrefix = "gpuslice-ledger-"

// ObjectName is the name of a budget's ledger.
func ObjectName(budgetKey string) string {
	hash := sha256.Sum256([]byte(budgetKey))
	return NamePrefix + hex.EncodeToString(hash[:10])
}

// Encode is the stored form of what the budget's ledger says. It gives ErrFull for one that is too large.
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

// Decode reads a stored ledger and the key of its budget. It refuses what is too large, malformed, of another version,
// or counts anything as less than nothing.
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
		return "", State{}, errors.New("decode ledger: more follows its end")
	}
	if d.Version != documentVersion {
		return "", State{}, fmt.Errorf("decode ledger: version %d, this build reads %d", d.Version, documentVersion)
	}
	if err := d.check(); err != nil {
		return "", State{}, fmt.Errorf("decode ledger %s: %w", d.Budget, err)
	}
	return d.Budget, d.State, nil
}

// check refuses a ledger that no build of ours can have written: it would let pods in for which there is no room.
func (d document) check() error {
	if len(d.Reservations) > maxReservations {
		return fmt.Errorf("%d reservations, the most is %d", len(d.Reservations), maxReservations)
	}
	for _, h := range d.Base {
		if !h.Sound() {
			return fmt.Errorf("the base of namespace %q is below nothing", h.Namespace)
		}
	}
	for _, r := range d.Reservations {
		if !r.Holding.Sound() || r.PodUID == "" {
			return fmt.Errorf("the reservation for %q of namespace %q is below nothing, or for no pod", r.Name, r.Holding.Namespace)
		}
	}
	return nil
}
