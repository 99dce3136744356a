package gpu

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// ErrHung is the error of a read that the driver did not answer in time.
var ErrHung = errors.New("the driver does not answer")

// failure turns NVML's return value into an error that names the call and, for some
// values, their meaning for the guard. It is nil for success.
func failure(call string, ret nvml.Return) error {
	if ret == nvml.SUCCESS {
		return nil
	}
	if meaning, known := meanings()[ret]; known {
		return fmt.Errorf("%s: %w: %s", call, ret, meaning)
	}
	return fmt.Errorf("%s: %w", call, ret)
}

func meanings() map[nvml.Return]string {
	return map[nvml.Return]string{
		nvml.ERROR_LIBRARY_NOT_FOUND:       "the container has no NVML; it needs the driver capability utility",
		nvml.ERROR_DRIVER_NOT_LOADED:       "the node has no NVIDIA driver, or it is not loaded",
		nvml.ERROR_LIB_RM_VERSION_MISMATCH: "the driver was updated under the container; start the pod again",
		nvml.ERROR_NOT_SUPPORTED:           "this device does not report it",
		nvml.ERROR_NO_PERMISSION:           "the container may not read this device",
		nvml.ERROR_GPU_IS_LOST:             "the device has fallen off the bus; the device plugin deals with it",
		nvml.ERROR_RESET_REQUIRED:          "the device waits for a reset",
	}
}

// absent reports whether the device or the driver lacks the function.
func absent(ret nvml.Return) bool {
	return ret == nvml.ERROR_NOT_SUPPORTED || ret == nvml.ERROR_FUNCTION_NOT_FOUND
}
