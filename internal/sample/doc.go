// Package sample adds sample memories and conversations to the account of a user who
// wants to try the product, and removes them again.
package sample
