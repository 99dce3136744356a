package api

// StrategyName is a way to share a device, in NVIDIA's own words.
type StrategyName string
