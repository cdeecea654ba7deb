// Package charts tests the Helm chart: the objects it renders for every set of
// values, that a real kube-apiserver accepts them under the restricted pod
// security standard, and that they match the binary's commands and flags.
package charts
