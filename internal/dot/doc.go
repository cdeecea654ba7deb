// Package dot computes dot products: of a query with the 8-bit codes of many vectors, and of two vectors.
package dot
