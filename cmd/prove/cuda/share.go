package cuda

// #include "calls.h"
import "C"

import "unsafe"

// AllocateAsync takes memory of the device's default pool by cuMemAllocAsync.
func (c *Context) AllocateAsync(bytes int64) error {
	const call = "cuMemAllocAsync"
	if err := c.driver.has(call); err != nil {
		return err
	}
	c.size = C.size_t(bytes)
	return c.driver.failure(call, C.call_allocate_async(c.driver.functions, &c.last, c.size))
}

// Write writes to all of what Allocate or AllocateAsync took last, and waits until the device is done.
func (c *Context) Write() error {
	return c.driver.failure("cuMemsetD8", C.call_fill(c.driver.functions, c.last, c.size))
}

// Memory returns the bytes that the driver reports to the process as free and as the device's total.
func (c *Context) Memory() (free, total int64, err error) {
	const call = "cuMemGetInfo_v2"
	if err := c.driver.has(call); err != nil {
		return 0, 0, err
	}
	var f, t C.size_t
	err = c.driver.failure(call, C.call_memory(c.driver.functions, &f, &t))
	return int64(f), int64(t), err
}

// multiprocessorCount is CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT.
const multiprocessorCount = 16

// Multiprocessors returns how many the process may use.
func (c *Context) Multiprocessors() (int, error) {
	const call = "cuDeviceGetAttribute"
	if err := c.driver.has(call); err != nil {
		return 0, err
	}
	var n C.int
	err := c.driver.failure(call, C.call_attribute(c.driver.functions, &n, multiprocessorCount, c.device))
	return int(n), err
}

// IPCHandle returns the handle by which another process opens what Allocate took last.
func (c *Context) IPCHandle() ([]byte, error) {
	const call = "cuIpcGetMemHandle"
	if err := c.driver.has(call); err != nil {
		return nil, err
	}
	var h C.struct_ipc
	err := c.driver.failure(call, C.call_ipc_get(c.driver.functions, &h, c.last))
	return C.GoBytes(unsafe.Pointer(&h), C.sizeof_struct_ipc), err
}

// OpenIPC opens the memory of another process's handle.
func (c *Context) OpenIPC(from []byte) error {
	const call = "cuIpcOpenMemHandle_v2"
	if err := c.driver.has(call); err != nil {
		return err
	}
	var h C.struct_ipc
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&h)), C.sizeof_struct_ipc), from)
	var at C.handle
	return c.driver.failure(call, C.call_ipc_open(c.driver.functions, &at, h))
}

// Export takes memory by cuMemCreate, and returns a file descriptor of it.
func (c *Context) Export(bytes int64) (fd int, err error) {
	const call = "cuMemExportToShareableHandle"
	if err := c.driver.has(call); err != nil {
		return 0, err
	}
	if err := c.create(bytes, descriptor); err != nil {
		return 0, err
	}
	var number C.int
	err = c.driver.failure(call, C.call_export(c.driver.functions, &number, c.last))
	return int(number), err
}

// Import takes the memory behind a descriptor.
func (c *Context) Import(fd int) error {
	const call = "cuMemImportFromShareableHandle"
	if err := c.driver.has(call); err != nil {
		return err
	}
	return c.driver.failure(call, C.call_import(c.driver.functions, &c.last, C.int(fd)))
}
