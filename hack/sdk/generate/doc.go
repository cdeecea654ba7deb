// Command generate writes the generated files of the SDKs. Run it with `make
// generate`.
package main
