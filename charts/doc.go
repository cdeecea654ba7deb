// Package charts holds the tests of the Helm chart beside it: what it makes of
// every kind of values, that the real kube-apiserver takes all of it under the
// restricted pod security standard, and that it agrees with the product.
package charts
