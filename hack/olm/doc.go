// Package olm makes the bundle with which the Operator Lifecycle Manager installs Mnemo, from the chart.
package olm
