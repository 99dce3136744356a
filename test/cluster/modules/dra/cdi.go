package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
)

// part is one request's part of one device.
type part struct {
	name, uuid string
	memory     int64
}

// The part of a CDI specification that is needed.
type (
	specification struct {
		Version string   `json:"cdiVersion"`
		Kind    string   `json:"kind"`
		Devices []device `json:"devices"`
	}
	device struct {
		Name  string `json:"name"`
		Edits struct {
			Env []string `json:"env"`
		} `json:"containerEdits"`
	}
)

func (d *driver) kind() string { return "k8s." + d.name + "/claim" }

func (d *driver) path(claim types.UID) string {
	return filepath.Join(d.specs, "dra-"+string(claim)+".json")
}

// write puts a claim's specification in place in one step: the runtime may read at any time.
func (d *driver) write(claim types.UID, parts []part) error {
	spec := specification{Version: "0.6.0", Kind: d.kind()}
	for _, p := range parts {
		one := device{Name: p.name}
		one.Edits.Env = []string{"NVIDIA_VISIBLE_DEVICES=" + p.uuid, fmt.Sprintf("TEST_CLAIMED_BYTES=%d", p.memory)}
		spec.Devices = append(spec.Devices, one)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode CDI specification: %w", err)
	}
	fresh := d.path(claim) + ".tmp"
	if err := os.WriteFile(fresh, text, 0o644); err != nil {
		return fmt.Errorf("write CDI specification: %w", err)
	}
	if err := os.Rename(fresh, d.path(claim)); err != nil {
		return fmt.Errorf("place CDI specification: %w", err)
	}
	return nil
}

func (d *driver) remove(claim types.UID) error {
	if err := os.Remove(d.path(claim)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove CDI specification: %w", err)
	}
	return nil
}
