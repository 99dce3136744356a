package cuda

// #include "calls.h"
import "C"

// Context is the calling process's on one device, and what it holds there. It belongs to the thread that opened it.
type Context struct {
	driver *driver
	device C.int
	held   []block
}

type block struct {
	handle  C.handle
	created bool
}

// Open loads the library (empty: by its name) and opens the device with that number among those of the process.
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
	var at C.handle
	err := c.driver.failure("cuMemAlloc", C.call_allocate(c.driver.functions, &at, C.size_t(bytes)))
	return c.keep(at, false, err)
}

// AllocateManaged takes memory by cuMemAllocManaged, and writes to it on the device.
func (c *Context) AllocateManaged(bytes int64) error {
	var at C.handle
	err := c.driver.failure("cuMemAllocManaged", C.call_allocate_managed(c.driver.functions, &at, C.size_t(bytes)))
	return c.keep(at, false, err)
}

// Create takes physical memory by cuMemCreate, rounded up to what the device gives.
func (c *Context) Create(bytes int64) error {
	var at C.handle
	var unit C.size_t
	if err := c.driver.failure("cuMemGetAllocationGranularity", C.call_granularity(c.driver.functions, &unit, c.device)); err != nil {
		return err
	}
	size := (C.size_t(bytes) + unit - 1) / unit * unit
	err := c.driver.failure("cuMemCreate", C.call_create(c.driver.functions, &at, size, c.device))
	return c.keep(at, true, err)
}

func (c *Context) keep(at C.handle, created bool, err error) error {
	if at != 0 {
		c.held = append(c.held, block{at, created})
	}
	return err
}

// Check asks the driver whether the context still serves.
func (c *Context) Check() error {
	return c.driver.failure("cuCtxSynchronize", C.call_synchronize(c.driver.functions))
}

// Close gives everything back.
func (c *Context) Close() {
	for _, b := range c.held {
		if b.created {
			C.call_release_created(c.driver.functions, b.handle)
		} else {
			C.call_release(c.driver.functions, b.handle)
		}
	}
	c.held = nil
	C.call_release_context(c.driver.functions, c.device)
}
