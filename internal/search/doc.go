// Package search searches memories and conversations together. The scores of both are
// probabilities of being relevant, so their results form one ranking.
package search
