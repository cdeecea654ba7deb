// Package tokens counts the tokens of a text the way current models do
// (o200k), with a vocabulary that is part of the binary.
package tokens
