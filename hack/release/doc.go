// Command release builds everything that a release publishes, without a container
// engine and without network access to a registry:
//
//	go run ./hack/release --version 1.2.3          into dist
//	go run ./hack/release --version 1.2.3 --push   and pushes the images and the chart
//
// Builds are reproducible: the same commit and version result in the same binaries, and with
// the same packages of the distribution in the same images. Only the chart's package
// contains the time at which helm made it.
package main
