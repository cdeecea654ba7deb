// Package dot multiplies vectors of small integers: a query with the 8-bit codes of many vectors.
package dot
