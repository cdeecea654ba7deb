package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cell is a Milvus instance that stores the vectors of some Tenants, in addition to the
// default one of the installation.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=mnemo
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`
// +kubebuilder:printcolumn:name="Cordoned",type=boolean,JSONPath=`.spec.cordoned`
// +kubebuilder:printcolumn:name="Tenants",type=integer,JSONPath=`.status.tenants`
// +kubebuilder:printcolumn:name="Units",type=integer,JSONPath=`.status.units`
// +kubebuilder:printcolumn:name="MaxTenants",type=integer,JSONPath=`.spec.capacity.tenants`,priority=1
// +kubebuilder:printcolumn:name="MaxUnits",type=integer,JSONPath=`.spec.capacity.units`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must have at most 63 characters"
type Cell struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec CellSpec `json:"spec"`
	// status is the observed state. The operator writes it.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status CellStatus `json:"status,omitempty"`
}

// CellList is a list of Cells.
//
// +kubebuilder:object:root=true
type CellList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cell `json:"items"`
}

// CellSpec is the desired state of a Cell.
type CellSpec struct {
	// milvus is the connection to the cell's Milvus instance. Required, no default.
	// Mutable: if the new address is that of an instance without the vectors, they are
	// written again from PostgreSQL.
	// +required
	Milvus CellMilvus `json:"milvus"`

	// region is the name by which Tenants request any of several cells. Default: none, the
	// cell must be requested by its name. Mutable: Tenants that request the former
	// region move to another cell of it.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Region string `json:"region,omitempty"`

	// capacity limits the number of Tenants that are placed in the cell. Lowering it does
	// not migrate Tenants that are already in the cell. Default: no limits. Mutable.
	// +optional
	Capacity CellCapacity `json:"capacity,omitempty"`

	// cordoned keeps Tenants from being placed in the cell. Those that request its region
	// move to another cell of it; those that request the cell by its name stay.
	// Default: false. Mutable.
	// +kubebuilder:default=false
	// +optional
	Cordoned bool `json:"cordoned,omitempty"`
}

// CellMilvus is the connection to a Milvus instance.
type CellMilvus struct {
	// address is the host:port of Milvus, or https://host:port for TLS. Required, no
	// default. Mutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https://)?([^][/:]+|[[][0-9a-fA-F:.]+[]]):[0-9]+$')",message="address must be host:port or https://host:port, such as [2001:db8::1]:19530"
	// +required
	Address string `json:"address"`

	// secretRef is the Secret with the credentials: keys username and password, and
	// optionally ca.crt with the CA of Milvus' certificate. Default: none, Milvus
	// requires no authentication. Mutable; changes of the Secret are applied
	// within minutes.
	// +optional
	SecretRef *CellSecretRef `json:"secretRef,omitempty"`
}

// CellSecretRef names a Secret in the namespace of the operator.
type CellSecretRef struct {
	// name is the name of the Secret. Required, no default. Mutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// CellCapacity limits what is placed in a cell.
type CellCapacity struct {
	// tenants is the maximum number of Tenants. Default: 0, no limit. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Tenants int64 `json:"tenants,omitempty"`

	// units is the maximum number of units. No more Tenants are placed in a cell that
	// reached it. Units are counted once an hour. Default: 0, no limit. Mutable.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Units int64 `json:"units,omitempty"`
}

// CellStatus is the observed state of a Cell.
type CellStatus struct {
	// observedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are described in docs/cells.md.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// tenants is the number of Tenants that are placed in the cell or move to it.
	// +optional
	Tenants int64 `json:"tenants"`

	// units is the number of their units, counted once an hour.
	// +optional
	Units int64 `json:"units"`
}

// CellFinalizer blocks the removal of a Cell while something is placed in it.
const CellFinalizer = "mnemo.dev/cell"

// The reasons of condition Ready of a Cell.
const (
	ReasonConnected      = "Connected"      // Ready
	ReasonSecretNotFound = "SecretNotFound" // spec.milvus.secretRef names no Secret, or one without the keys
	ReasonConnecting     = "Connecting"     // the connection has not reached the operator yet
	ReasonInUse          = "InUse"          // the Cell is being deleted, but something is placed in it
)
