package spellings

// All lists the spellings of other systems, one file each.
func All() []Spelling {
	return []Spelling{
		fractionalQuantity(), sharedName(), aliyun(), gke(), hami(), kai(), koordinator(),
		kubeShare(), nos(), nvidia(), tensorFusion(), tkestack(),
		vgpuManager(), volcano(),
	}
}

// Units are the names of systems whose unit of memory is configured in their device plugins.
func Units() (names []string) {
	for _, s := range All() {
		if s.Unit > 0 {
			names = append(names, s.Name)
		}
	}
	return names
}

// Names are the accepted values of a policy's accept list.
func Names() []string {
	var names []string
	for _, s := range All() {
		names = append(names, s.Name)
	}
	return names
}
