// Package tokens counts tokens with the o200k vocabulary, which is compiled into the
// binary.
package tokens
