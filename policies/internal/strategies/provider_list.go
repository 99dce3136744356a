package strategies

// providers are all there are.
var providers = []Provider{nvidiaPlugin(), hostDaemon(), gke()}

// ProviderNames are the names of all providers.
func ProviderNames() []MPSProviderName {
	names := make([]MPSProviderName, len(providers))
	for i := range providers {
		names[i] = providers[i].Name
	}
	return names
}

// ProviderNamed returns the provider of that name; the zero Provider where there is none.
func ProviderNamed(name MPSProviderName) *Provider {
	for i := range providers {
		if providers[i].Name == name {
			return &providers[i]
		}
	}
	return &Provider{}
}

// ProviderLabeled returns the provider whose daemons have labels of that source.
func ProviderLabeled(source LabelSource) *Provider {
	for i := range providers {
		if providers[i].LabeledBy == source {
			return &providers[i]
		}
	}
	return &Provider{}
}
