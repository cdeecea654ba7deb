package controllers

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/placement"
)

// connection returns the connection of the spec. problem says what is wrong with the
// Secret.
func (r *CellReconciler) connection(ctx context.Context, c *v1alpha1.Cell) (connection *placement.Connection, problem string, err error) {
	connection = &placement.Connection{Address: c.Spec.Milvus.Address}
	if c.Spec.Milvus.SecretRef == nil {
		return connection, "", nil
	}
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: r.config.CellsSecret.Namespace, Name: c.Spec.Milvus.SecretRef.Name}
	err = r.live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Sprintf("create Secret %s in namespace %s with keys username and password", key.Name, key.Namespace), nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("get Secret of cell: %w", err)
	}
	connection.Username, connection.Password = string(secret.Data["username"]), string(secret.Data["password"])
	connection.CA = string(secret.Data["ca.crt"])
	if connection.Username == "" || connection.Password == "" {
		return nil, fmt.Sprintf("add keys username and password to Secret %s in namespace %s", key.Name, key.Namespace), nil
	}
	return connection, "", nil
}

// writeConnection writes the connection of a cell to the Secret with all of them, or
// removes it.
func (r *CellReconciler) writeConnection(ctx context.Context, name string, c *placement.Connection) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.config.CellsSecret.Namespace, Name: r.config.CellsSecret.Name}}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	create := apierrors.IsNotFound(err)
	if err != nil && !create {
		return fmt.Errorf("get Secret of connections: %w", err)
	}
	before := secret.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	if c == nil {
		delete(secret.Data, name+placement.ConnectionSuffix)
	} else if secret.Data[name+placement.ConnectionSuffix], err = json.Marshal(c); err != nil { //nolint:gosec // the password belongs in a Secret
		return fmt.Errorf("encode connection: %w", err)
	}
	switch {
	case create && c != nil:
		err = r.client.Create(ctx, secret)
	case !create && !equality.Semantic.DeepEqual(before.Data, secret.Data):
		err = r.client.Update(ctx, secret)
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("write Secret of connections: %w", err)
	}
	return nil
}

// cellState is the reason and the message of condition Ready. The Cell is ready with reason
// Connected.
type cellState struct{ reason, message string }

// inUse returns why a Cell that is being deleted still exists. state is that of its connection,
// without which partitions cannot be dropped.
func inUse(c *v1alpha1.Cell, state cellState, leaving int64) cellState {
	message := fmt.Sprintf("%d locations that Tenants left are dropped within 15 minutes; then the Cell is deleted", leaving)
	if c.Status.Tenants > 0 {
		message = "the Cell is deleted when nothing is placed in it; change spec.placement of its Tenants, and purge retained data with mnemo tenants purge"
	}
	if state.reason != v1alpha1.ReasonConnected {
		message += ". Partitions cannot be dropped now: " + state.message
	}
	return cellState{v1alpha1.ReasonInUse, message}
}

// setCellReady sets Ready and at most one of Reconciling and Stalled. A condition that persists
// keeps its transition time, so it is never removed and added again.
func setCellReady(c *v1alpha1.Cell, state cellState) {
	set := func(conditionType string, status metav1.ConditionStatus) {
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
			Type: conditionType, Status: status, Reason: state.reason, Message: state.message, ObservedGeneration: c.Generation,
		})
	}
	switch state.reason {
	case v1alpha1.ReasonConnected:
		set(v1alpha1.Ready, metav1.ConditionTrue)
		meta.RemoveStatusCondition(&c.Status.Conditions, v1alpha1.Reconciling)
		meta.RemoveStatusCondition(&c.Status.Conditions, v1alpha1.Stalled)
	case v1alpha1.ReasonSecretNotFound:
		set(v1alpha1.Ready, metav1.ConditionFalse)
		meta.RemoveStatusCondition(&c.Status.Conditions, v1alpha1.Reconciling)
		set(v1alpha1.Stalled, metav1.ConditionTrue)
	default:
		set(v1alpha1.Ready, metav1.ConditionFalse)
		meta.RemoveStatusCondition(&c.Status.Conditions, v1alpha1.Stalled)
		set(v1alpha1.Reconciling, metav1.ConditionTrue)
	}
}
