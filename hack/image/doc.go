// Package image builds Mnemo's container images without a container engine. They
// are equivalent to those of the Dockerfile. Builds are reproducible: the same
// source results in the same digest.
package image
