// Package textrule has the rules for texts from outside: whether a reader sees anything, and which characters the name of an
// object must not contain.
package textrule
