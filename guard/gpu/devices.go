package gpu

import (
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

// ready opens NVML and finds the devices, when that is due.
func (d *Driver) ready() error {
	if err := d.open(); err != nil {
		return err
	}
	if !d.stale || len(d.devices) > 0 && time.Since(d.foundAt) < findPause {
		return nil
	}
	d.foundAt = time.Now()
	found, err := d.find()
	if err != nil && len(d.devices) == 0 {
		return err
	}
	if err == nil {
		d.devices = found
		d.stale = slices.ContainsFunc(found, func(dev *device) bool { return dev.missing != nil })
	}
	return nil // each handle that is left fails with its own reason
}

// find returns every visible device; in place of one that MIG partitions, its
// instances, since the device itself answers only to privileged callers. A device
// that cannot be opened is there with the reason, and hides no other.
func (d *Driver) find() ([]*device, error) {
	n, ret := d.library.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, failure("count devices", ret)
	}
	var found []*device
	var failures []error
	for i := range n {
		devices, err := d.openDevice(i)
		if err != nil {
			devices, failures = d.lost(i, err), append(failures, err)
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
func (d *Driver) openDevice(index int) ([]*device, error) {
	handle, ret := d.library.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return nil, failure(fmt.Sprintf("open device %d", index), ret)
	}
	handles := []nvml.Device{handle}
	instances, mig, err := d.instances(handle)
	if err != nil {
		return nil, err
	}
	if mig {
		handles = instances
	}
	var opened []*device
	for _, h := range handles {
		dev, err := d.describe(h)
		if err != nil {
			return nil, err
		}
		dev.index, dev.instance = index, mig
		opened = append(opened, dev)
	}
	return opened, nil
}

// lost returns the device with that index as it was known, which fails with its
// own reason, or one of which nothing is known.
func (d *Driver) lost(index int, err error) []*device {
	known := slices.DeleteFunc(slices.Clone(d.devices), func(dev *device) bool { return dev.index != index })
	if len(known) > 0 {
		return known
	}
	return []*device{{index: index, id: fmt.Sprintf("device %d", index), missing: err}}
}

// instances returns the MIG instances of a device, and whether MIG is on.
func (d *Driver) instances(parent nvml.Device) ([]nvml.Device, bool, error) {
	if !d.has["nvmlDeviceGetMigMode"] || !d.has["nvmlDeviceGetMaxMigDeviceCount"] || !d.has["nvmlDeviceGetMigDeviceHandleByIndex"] {
		return nil, false, nil
	}
	mode, _, ret := parent.GetMigMode()
	if ret != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return nil, false, nil
	}
	most, ret := parent.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return nil, true, failure("count MIG instances", ret)
	}
	var found []nvml.Device
	for i := range most {
		if h, ret := parent.GetMigDeviceHandleByIndex(i); ret == nvml.SUCCESS {
			found = append(found, h)
		}
	}
	return found, true, nil
}

// describe returns a device, with what was listed on it before.
func (d *Driver) describe(h nvml.Device) (*device, error) {
	id, ret := h.GetUUID()
	if ret != nvml.SUCCESS {
		return nil, failure("read a device's UUID", ret)
	}
	dev := &device{handle: h, id: id}
	for _, known := range d.devices {
		if known.id == id {
			dev.last, dev.seen = known.last, known.seen
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
