// Package installation gives a test Mnemo as a host has it: the program as
// processes, with the operator's account and exactly its rights in a namespace
// of its own, and a database and collections of its own.
package installation
