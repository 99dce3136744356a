package ledger

import (
	"context"
	"errors"
)

// Object is a stored ledger.
type Object struct {
	Name    string
	UID     string // changes when the object is deleted and created again
	Version string // resource version, which an update has to name
	Budget  string // its key, for people
	Data    []byte
}

// Store stores ledgers. Each of its errors wraps one of ErrNotFound, ErrExists, ErrConflict, ErrUnknown and ErrRejected.
type Store interface {
	// Get reads the current object, never from a cache.
	Get(ctx context.Context, name string) (Object, error)
	// Create creates the object; ErrExists if it exists.
	Create(ctx context.Context, o Object) (Object, error)
	// Update replaces the object if its version is still o.Version; else ErrConflict.
	Update(ctx context.Context, o Object) (Object, error)
}

// Lister lists namespaces consistently: all that was stored before the call, nothing from a cache.
type Lister interface {
	// List returns the namespaces and their pods that have neither succeeded nor failed. It does not set StartedAt.
	List(ctx context.Context, namespaces []string) (Listing, error)
}

// Watcher knows pods from watches, without a call.
type Watcher interface {
	// View returns the watches' view of the namespaces. It returns false if a namespace has no watch, or
	// its watch has not started or is broken. Pending reports the last two.
	View(namespaces []string, reservations []Reservation) (View, bool)
}

// Errors of a call to a Store or Lister.
var (
	ErrNotFound = errors.New("the ledger does not exist")
	ErrExists   = errors.New("the ledger already exists")
	ErrConflict = errors.New("the ledger has changed since it was read")
	// ErrUnknown means no answer, or one that leaves the outcome open. The call may still take effect later.
	ErrUnknown = errors.New("the outcome is unknown")
	// ErrRejected means that the call took no effect, and would be rejected again.
	ErrRejected = errors.New("the call was rejected")
)
