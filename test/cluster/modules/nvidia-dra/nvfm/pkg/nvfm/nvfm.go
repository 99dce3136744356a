// Package nvfm stands in for NVIDIA's bindings of its fabric manager, whose partitions of NVSwitch the driver reads
// where the gate of passed-through GPUs is on. There is none here.
package nvfm

// Return is the answer of a call.
type Return int

// SUCCESS is that of a successful call.
const SUCCESS Return = 0

const notSupported Return = -1

// String names the answer.
func (r Return) String() string {
	if r == SUCCESS {
		return "SUCCESS"
	}
	return "NOT_SUPPORTED"
}

type (
	// FabricPartitionId identifies a partition.
	FabricPartitionId uint32
	// LibraryOption sets the place of the library.
	LibraryOption func()
	// ConnectOption sets the place of the fabric manager.
	ConnectOption func()
)

// The lists that the fabric manager gives.
type (
	FabricPartitionList struct {
		NumPartitions uint32
		PartitionInfo [64]FabricPartitionInfo
	}
	FabricPartitionInfo struct {
		PartitionId, IsActive, NumGpus uint32
		GpuInfo                        [16]FabricPartitionGpuInfo
	}
	FabricPartitionGpuInfo struct {
		PhysicalId                                             uint32
		Uuid, PciBusId                                         [80]int8
		NumNvLinksAvailable, MaxNumNvLinks, NvlinkLineRateMBps uint32
	}
)

// Interface is the library.
type Interface interface {
	Init() Return
	Shutdown() Return
	Connect(...ConnectOption) (Handle, Return)
}

// Handle is a connection.
type Handle interface {
	GetSupportedFabricPartitions() (FabricPartitionList, Return)
	ActivateFabricPartition(FabricPartitionId) Return
	DeactivateFabricPartition(FabricPartitionId) Return
	Disconnect() Return
}

type none struct{}

func (none) Init() Return                              { return notSupported }
func (none) Shutdown() Return                          { return notSupported }
func (none) Connect(...ConnectOption) (Handle, Return) { return nil, notSupported }

// New returns a library that supports nothing.
func New(...LibraryOption) Interface { return none{} }

// WithLibraryPath has no effect, as have all options.
func WithLibraryPath(string) LibraryOption { return func() {} }

// WithUnixSocket has no effect.
func WithUnixSocket(string) ConnectOption { return func() {} }

// WithAddress has no effect.
func WithAddress(string) ConnectOption { return func() {} }

// WithTimeoutMs has no effect.
func WithTimeoutMs(uint32) ConnectOption { return func() {} }
