package cuda

/*
#cgo LDFLAGS: -ldl
#include "calls.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// Library is the driver's file; programs load it by this name.
const Library = "libcuda.so.1"

// Error is an error code of the driver.
type Error struct {
	Call, Name string
	Code       int
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s (%d)", e.Call, e.Name, e.Code) }

// Codes that show which limit stopped a program.
const (
	OutOfMemory       = 2
	DeviceUnavailable = 46
	ClientTerminated  = 810 // by its MPS daemon
)

// driver is the loaded library.
type driver struct{ functions *C.struct_functions }

// load opens the library at a path, or by its name.
func load(path string) (*driver, error) {
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	library := C.dlopen(text, C.RTLD_NOW|C.RTLD_LOCAL)
	if library == nil {
		return nil, fmt.Errorf("load CUDA's driver API: %s", C.GoString(C.dlerror()))
	}
	d := &driver{(*C.struct_functions)(C.calloc(1, C.sizeof_struct_functions))}
	var missing []error
	for name, to := range d.symbols() {
		if *to = d.symbol(library, name); *to == nil {
			missing = append(missing, fmt.Errorf("load CUDA's driver API: the library has no %s", name))
		}
	}
	for name, to := range d.optional() {
		*to = d.symbol(library, name)
	}
	return d, errors.Join(missing...)
}

// ErrMissing is wrapped by the error of a call that the library does not have.
var ErrMissing = errors.New("the CUDA library does not have it")

// has returns an error where the library lacks a call.
func (d *driver) has(name string) error {
	if *d.optional()[name] == nil {
		return fmt.Errorf("%s: %w", name, ErrMissing)
	}
	return nil
}

// optional are calls that no slice is tried with.
func (d *driver) optional() map[string]*unsafe.Pointer {
	f := d.functions
	return map[string]*unsafe.Pointer{
		"cuMemGetInfo_v2":                (*unsafe.Pointer)(unsafe.Pointer(&f.memory)),
		"cuDeviceGetAttribute":           (*unsafe.Pointer)(unsafe.Pointer(&f.attribute)),
		"cuMemAllocAsync":                (*unsafe.Pointer)(unsafe.Pointer(&f.allocate_async)),
		"cuIpcGetMemHandle":              (*unsafe.Pointer)(unsafe.Pointer(&f.ipc_get)),
		"cuIpcOpenMemHandle_v2":          (*unsafe.Pointer)(unsafe.Pointer(&f.ipc_open)),
		"cuMemExportToShareableHandle":   (*unsafe.Pointer)(unsafe.Pointer(&f.give)),
		"cuMemImportFromShareableHandle": (*unsafe.Pointer)(unsafe.Pointer(&f.take)),
	}
}

func (d *driver) symbol(library unsafe.Pointer, name string) unsafe.Pointer {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return C.dlsym(library, text)
}

func (d *driver) symbols() map[string]*unsafe.Pointer {
	f := d.functions
	return map[string]*unsafe.Pointer{
		"cuInit":                        (*unsafe.Pointer)(unsafe.Pointer(&f.init)),
		"cuDeviceGet":                   (*unsafe.Pointer)(unsafe.Pointer(&f.device)),
		"cuDevicePrimaryCtxRetain":      (*unsafe.Pointer)(unsafe.Pointer(&f.retain)),
		"cuCtxSetCurrent":               (*unsafe.Pointer)(unsafe.Pointer(&f.set_current)),
		"cuCtxSynchronize":              (*unsafe.Pointer)(unsafe.Pointer(&f.synchronize)),
		"cuMemAlloc_v2":                 (*unsafe.Pointer)(unsafe.Pointer(&f.allocate)),
		"cuMemAllocManaged":             (*unsafe.Pointer)(unsafe.Pointer(&f.allocate_managed)),
		"cuMemsetD8_v2":                 (*unsafe.Pointer)(unsafe.Pointer(&f.fill)),
		"cuMemGetAllocationGranularity": (*unsafe.Pointer)(unsafe.Pointer(&f.granularity)),
		"cuMemCreate":                   (*unsafe.Pointer)(unsafe.Pointer(&f.create)),
		"cuGetErrorName":                (*unsafe.Pointer)(unsafe.Pointer(&f.error_name)),
	}
}

// failure is nil for success.
func (d *driver) failure(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	name := C.GoString(C.call_error_name(d.functions, code))
	if name == "" {
		name = "unknown error"
	}
	return &Error{Call: call, Name: name, Code: int(code)}
}
