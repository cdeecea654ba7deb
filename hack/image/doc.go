// Package image makes Mnemo's container images without a container engine:
// what the Dockerfile makes, from the same arguments, for machines that have
// none. The same source gives the same image, digest and all.
package image
