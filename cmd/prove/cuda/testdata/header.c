// Compares ../calls.h with CUDA's own header: names, numbers and widths of arguments, layouts, constants.
#include <cuda.h>
#include "../calls.h"

// -Wcast-function-type takes any pointer for any other, and integers of one width for each other, and nothing else.
#define SAME(field, function) (void)(__typeof__(((struct functions *)0)->field))function
#define EQUAL(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #theirs)
#define AT(ours, theirs) EQUAL(offsetof(struct properties, ours), offsetof(CUmemAllocationProp, theirs))

EQUAL(sizeof(struct properties), sizeof(CUmemAllocationProp));
AT(type, type);
AT(handles, requestedHandleTypes);
AT(location.type, location.type);
AT(location.id, location.id);
AT(metadata, win32HandleMetaData);
AT(flags, allocFlags);
EQUAL(sizeof(struct ipc), sizeof(CUipcMemHandle));
EQUAL(_Alignof(struct ipc), _Alignof(CUipcMemHandle));
EQUAL(sizeof(handle), sizeof(CUdeviceptr));
EQUAL(sizeof(handle), sizeof(CUmemGenericAllocationHandle));
EQUAL(ATTACH_GLOBAL, CU_MEM_ATTACH_GLOBAL);
EQUAL(PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
EQUAL(ON_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
EQUAL(MINIMUM, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
EQUAL(LAZY_PEER_ACCESS, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
EQUAL(DESCRIPTOR, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
EQUAL(MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
EQUAL(OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
EQUAL(DEVICE_UNAVAILABLE, CUDA_ERROR_DEVICE_UNAVAILABLE);
EQUAL(CLIENT_TERMINATED, CUDA_ERROR_MPS_CLIENT_TERMINATED);

void compare(void) {
	SAME(init, cuInit);
	SAME(device, cuDeviceGet);
	SAME(retain, cuDevicePrimaryCtxRetain);
	SAME(set_current, cuCtxSetCurrent);
	SAME(synchronize, cuCtxSynchronize);
	SAME(allocate, cuMemAlloc_v2);
	SAME(allocate_managed, cuMemAllocManaged);
	SAME(fill, cuMemsetD8_v2);
	SAME(granularity, cuMemGetAllocationGranularity);
	SAME(create, cuMemCreate);
	SAME(error_name, cuGetErrorName);
	SAME(memory, cuMemGetInfo_v2);
	SAME(attribute, cuDeviceGetAttribute);
	SAME(allocate_async, cuMemAllocAsync);
	SAME(ipc_get, cuIpcGetMemHandle);
	// The handle is passed by value: a structure of the same size and alignment.
	CUresult (*open)(CUdeviceptr *, CUipcMemHandle, unsigned) = cuIpcOpenMemHandle_v2;
	(void)open;
	SAME(give, cuMemExportToShareableHandle);
	SAME(take, cuMemImportFromShareableHandle);
}
