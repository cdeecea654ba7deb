// Package dot computes dot products of small integers: of a query with the 8-bit codes of many vectors.
package dot
