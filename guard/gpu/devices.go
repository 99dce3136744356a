package gpu

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// errNoDevice is the error of a container that no device is visible to.
var errNoDevice = errors.New("no device is visible to the guard; its access to the GPU is missing")

// ready opens NVML and finds the devices, when that is due.
func (d *Driver) ready() error {
	if err := d.open(); err != nil {
		return err
	}
	if !d.stale {
		return nil
	}
	found, err := d.find()
	if err != nil && len(d.devices) == 0 {
		return err
	}
	if err == nil {
		d.devices, d.stale = found, false
	}
	return nil // each handle that is left fails with its own reason
}

// find returns every visible device; in place of one that MIG partitions, its
// instances, since the device itself answers only to privileged callers.
func (d *Driver) find() ([]*device, error) {
	n, ret := d.library.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, failure("count devices", ret)
	}
	var found []*device
	for i := range n {
		handle, ret := d.library.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			return nil, failure(fmt.Sprintf("open device %d", i), ret)
		}
		handles := []nvml.Device{handle}
		instances, mig, err := d.instances(handle)
		if err != nil {
			return nil, err
		}
		if mig {
			handles = instances
		}
		for _, h := range handles {
			dev, err := d.describe(h)
			if err != nil {
				return nil, err
			}
			dev.instance = mig
			found = append(found, dev)
		}
	}
	if len(found) == 0 {
		return nil, errNoDevice
	}
	return found, nil
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
