package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// errNoDevice is the error of a container that no device is visible to.
var errNoDevice = errors.New("no device is visible to the guard; its access to the GPU is missing")

// findPause is the least time between two searches for devices.
const findPause = 2 * time.Second

// known opens NVML, finds the devices when that is due, and returns them.
func (d *Driver) known(ctx context.Context) ([]*device, error) {
	d.search.Lock()
	defer d.search.Unlock()
	known := d.found()
	if len(known) == 0 {
		if _, err := d.open(ctx); err != nil {
			return nil, err
		}
	}
	// Each failed reading makes the devices stale, and a search costs more than a reading.
	if !d.stale.Load() || len(known) > 0 && time.Since(d.foundAt) < findPause {
		return known, nil
	}
	d.foundAt = time.Now()
	d.stale.Store(false)
	found, err := d.find(ctx, known)
	if err != nil {
		d.stale.Store(true)
		if len(known) == 0 {
			return nil, err
		}
		return known, nil // each handle that is left fails with its own reason
	}
	if slices.ContainsFunc(found, func(dev *device) bool { return dev.missing != nil }) {
		d.stale.Store(true)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.devices = found
	return slices.Clone(found), nil
}

// found returns the devices that the last search found.
func (d *Driver) found() []*device {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.devices)
}

// find returns every visible device; in place of one that MIG partitions, its
// instances, since the device itself answers only to privileged callers. A device
// that cannot be opened is there with the reason, and hides no other.
func (d *Driver) find(ctx context.Context, known []*device) ([]*device, error) {
	n, err := bounded(ctx, d.watchdog, counting, func(bool) (int, error) {
		n, ret := d.library.DeviceGetCount()
		return n, failure("count devices", ret)
	})
	if err != nil {
		return nil, err
	}
	var indices []*device
	for i := range n {
		indices = append(indices, &device{index: i})
	}
	var found []*device
	var failures []error
	for i, opened := range ask(ctx, d, opening, indices,
		func(at *device, _ bool) ([]*device, error) { return d.openDevice(at.index, known) }) {
		devices := opened.value
		if opened.err != nil {
			devices, failures = lost(i, opened.err, known), append(failures, opened.err)
		}
		found = append(found, devices...)
	}
	if len(found) == 0 {
		return nil, errNoDevice
	}
	if len(failures) == n {
		return nil, failures[0]
	}
	return found, nil
}

// openDevice opens the device with that index, or its instances.
func (d *Driver) openDevice(index int, known []*device) ([]*device, error) {
	handle, ret := d.library.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return nil, failure(fmt.Sprintf("open device %d", index), ret)
	}
	places, mig, err := d.instances(handle)
	if err != nil {
		return nil, err
	}
	if !mig {
		dev, err := d.describe(handle, index, known)
		return []*device{dev}, err
	}
	before := slices.ContainsFunc(known, func(dev *device) bool { return dev.index == index })
	var opened []*device
	for i := range places {
		dev, err := d.openInstance(handle, index, i, known)
		if err != nil && before {
			return nil, err
		}
		if err != nil {
			dev = &device{index: index, id: fmt.Sprintf("instance %d of device %d", i, index), missing: err}
		}
		if dev != nil {
			dev.instance = true
			opened = append(opened, dev)
		}
	}
	return opened, nil
}

// openInstance opens the MIG instance in a place of a device; nil: the place is empty.
func (d *Driver) openInstance(parent nvml.Device, index, place int, known []*device) (*device, error) {
	h, ret := parent.GetMigDeviceHandleByIndex(place)
	switch ret {
	case nvml.SUCCESS:
		return d.describe(h, index, known)
	case nvml.ERROR_NOT_FOUND, nvml.ERROR_INVALID_ARGUMENT: // as NVIDIA's go-nvlib reads them
		return nil, nil
	}
	return nil, failure(fmt.Sprintf("open instance %d of device %d", place, index), ret)
}

// lost returns the device with that index as it was known, which fails with its
// own reason, or one of which nothing is known.
func lost(index int, err error, known []*device) []*device {
	known = slices.DeleteFunc(slices.Clone(known), func(dev *device) bool { return dev.index != index })
	if len(known) > 0 {
		return known
	}
	return []*device{{index: index, id: fmt.Sprintf("device %d", index), missing: err}}
}

// instances returns how many MIG instances a device has place for, and whether MIG is on.
func (d *Driver) instances(parent nvml.Device) (places int, mig bool, err error) {
	// Drivers from before MIG lack these functions.
	if !d.has["nvmlDeviceGetMigMode"] || !d.has["nvmlDeviceGetMaxMigDeviceCount"] || !d.has["nvmlDeviceGetMigDeviceHandleByIndex"] {
		return 0, false, nil
	}
	mode, _, ret := parent.GetMigMode()
	if ret != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return 0, false, nil
	}
	places, ret = parent.GetMaxMigDeviceCount()
	return places, true, failure("count MIG instances", ret)
}

// describe returns a device, with its former list.
func (d *Driver) describe(h nvml.Device, index int, known []*device) (*device, error) {
	id, ret := h.GetUUID()
	if ret != nvml.SUCCESS {
		return nil, failure("read a device's UUID", ret)
	}
	dev := &device{handle: h, index: index, id: id}
	for _, before := range known {
		if before.id == id && before.index == index { // or it belongs to another call
			dev.last, dev.seen = before.last, before.seen
		}
	}
	if d.has["nvmlDeviceGetName"] {
		dev.name, _ = h.GetName()
	}
	if d.has["nvmlDeviceGetComputeMode"] {
		mode, ret := h.GetComputeMode()
		dev.exclusive = ret == nvml.SUCCESS && mode == nvml.COMPUTEMODE_EXCLUSIVE_PROCESS
	}
	return dev, nil
}
