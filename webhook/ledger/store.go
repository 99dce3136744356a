package ledger

import (
	"context"
	"errors"
)

// Object is a stored ledger.
type Object struct {
	Name    string
	UID     string // another one after the object was deleted and made again
	Version string // the version that an update has to name
	Budget  string // its key, for people
	Data    []byte
}

// Store keeps ledgers. Each of its errors wraps one of ErrNotFound, ErrExists, ErrConflict, ErrUnknown and ErrRefused.
type Store interface {
	// Get reads the object as it is now, never from a cache.
	Get(ctx context.Context, name string) (Object, error)
	// Create makes the object; ErrExists where there is one.
	Create(ctx context.Context, o Object) (Object, error)
	// Update replaces the object if its version is still o.Version; else ErrConflict.
	Update(ctx context.Context, o Object) (Object, error)
}

// Lister lists what lives in namespaces, consistently: all that was stored before the call, nothing from a cache.
type Lister interface {
	// List returns the namespaces with those of their pods that have neither succeeded nor failed. Asked is left open.
	List(ctx context.Context, namespaces []string) (Listing, error)
}

// What becomes of a call to a Store or Lister.
var (
	ErrNotFound = errors.New("there is no such ledger")
	ErrExists   = errors.New("the ledger exists already")
	ErrConflict = errors.New("the ledger has changed since it was read")
	// ErrUnknown: no answer, or one that leaves open whether it was done. It may still be done later.
	ErrUnknown = errors.New("the outcome is unknown")
	// ErrRefused: it was not done, and will not be done if it is tried again as it is.
	ErrRejected = errors.New("the call was refused")
)
