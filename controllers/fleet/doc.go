// Package fleet holds the operator, as a process on real stores with rights in
// one namespace, to many Tenants at once, to being killed, and to a second one
// beside it. It has tests only.
package fleet
