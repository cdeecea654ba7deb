// Package v1alpha1 is the Kubernetes API of Mnemo: the Tenant resource.
//
// Rules that span several fields are CEL expressions in the schema, so no
// webhook is needed. Every string has a maximum length, because the API server
// estimates the cost of a CEL rule from the largest possible input.
//
// +kubebuilder:object:generate=true
// +groupName=mnemo.dev
package v1alpha1
