// Package image builds Mnemo's container images without a container engine. Builds
// are reproducible: the same binary and libraries result in the same digest.
package image
