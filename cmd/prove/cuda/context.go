package cuda

// #include "calls.h"
import "C"

// Context is the calling process's on one device. It belongs to the thread that
// opened it, and its memory to the process: the driver frees it at the end of that.
type Context struct {
	driver *driver
	device C.int
	last   C.handle // what was taken last
	size   C.size_t
}

// Open loads the library (empty: by its name) and opens the device with that number among the devices of the process.
func Open(path string, ordinal int) (*Context, error) {
	if path == "" {
		path = Library
	}
	d, err := load(path)
	if err != nil {
		return nil, err
	}
	if err := d.failure("cuInit", C.call_init(d.functions)); err != nil {
		return nil, err
	}
	c := &Context{driver: d}
	if err := d.failure("cuDeviceGet", C.call_device(d.functions, &c.device, C.int(ordinal))); err != nil {
		return nil, err
	}
	return c, d.failure("cuDevicePrimaryCtxRetain", C.call_retain(d.functions, c.device))
}

// Allocate takes memory of the device by cuMemAlloc.
func (c *Context) Allocate(bytes int64) error {
	c.size = C.size_t(bytes)
	return c.driver.failure("cuMemAlloc", C.call_allocate(c.driver.functions, &c.last, c.size))
}

// AllocateManaged takes memory by cuMemAllocManaged, and writes to it on the device.
func (c *Context) AllocateManaged(bytes int64) error {
	var at C.handle
	return c.driver.failure("cuMemAllocManaged", C.call_allocate_managed(c.driver.functions, &at, C.size_t(bytes)))
}

// Create takes physical memory by cuMemCreate, rounded up to the device's
// granularity.
func (c *Context) Create(bytes int64) error { return c.create(bytes, noHandle) }

// Kinds of handles that another process can get.
const (
	noHandle   = 0
	descriptor = 1
)

func (c *Context) create(bytes int64, handles C.int) error {
	var unit C.size_t
	granularity := C.call_granularity(c.driver.functions, &unit, c.device, handles)
	if err := c.driver.failure("cuMemGetAllocationGranularity", granularity); err != nil {
		return err
	}
	size := (C.size_t(bytes) + unit - 1) / unit * unit
	return c.driver.failure("cuMemCreate", C.call_create(c.driver.functions, &c.last, size, c.device, handles))
}

// Check reports whether the context still works, by a call to the driver.
func (c *Context) Check() error {
	return c.driver.failure("cuCtxSynchronize", C.call_synchronize(c.driver.functions))
}
