// Package placement holds what a host fears of the vector store to the program as
// processes: servers killed while a tenant moves from one kind of place to the
// other, and a volume that is lost whole. It has tests only.
package placement
