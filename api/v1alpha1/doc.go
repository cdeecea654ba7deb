// Package v1alpha1 is the Kubernetes API of Mnemo: the Tenant resource.
//
// Rules that need more than one field are CEL in the schema, so that there is
// no webhook to run; every string is bounded, because the API server estimates
// the cost of a rule by what its input may be.
//
// +kubebuilder:object:generate=true
// +groupName=mnemo.dev
package v1alpha1
