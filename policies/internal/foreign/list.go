package foreign

// Systems lists the systems.
func Systems() []System {
	return []System{aliyun(), hami(), kai(), koordinator(), kubeShare(), tensorFusion(), tkestack(), vgpuManager(), volcano()}
}
