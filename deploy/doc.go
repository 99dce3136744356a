// Package deploy holds the manifests of gpuslice, numbered in the order in which they are applied. They are embedded,
// so that tests and tools read the files that users apply.
//
// A manifest is written once, here: the chart's numbered templates and kustomization.yaml are made of it ("make
// manifests"), and a test fails when they differ. A comment "# chart: ..." on its own line becomes a line of the
// template; after a value it replaces the value, or the block below the key.
//
// The webhook configurations carry no caBundle: the webhook writes its own, or with the component certmanager the cainjector.
// 60-policies are samples and not part of an installation.
package deploy
