package controllers

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// syncStore stores the tenant, its users and its quota as specified.
func (r *TenantReconciler) syncStore(ctx context.Context, p *pass) error {
	spec := r.spec(p.tenant)
	limited := limit(&spec.Quota, r.config.Maximum)
	perUser := limitPerUser(&spec.Quota)
	oidc, err := r.oidc(ctx, p.tenant)
	if err != nil {
		p.setFailed(v1alpha1.Synced, err)
		return err
	}
	spec.OIDC = oidc
	stored, err := r.applySpec(ctx, spec)
	if conflict, ok := errors.AsType[tenant.NameConflict](err); ok {
		return r.setNameConflict(ctx, p, conflict)
	}
	if err != nil {
		p.setFailed(v1alpha1.Synced, err)
		return fmt.Errorf("apply tenant: %w", err)
	}
	p.stored = stored
	p.tenant.Status.ID = string(stored.ID)
	p.setCondition(v1alpha1.Synced, true, v1alpha1.ReasonApplied, "tenant, users and quota are stored as specified")
	p.setQuotaLimited(limited, perUser)
	p.setOIDCReady(spec.OIDC.Unassigned)
	return nil
}

// refreshUsage reports the tenant's usage. On an error the last values stay.
func (r *TenantReconciler) refreshUsage(ctx context.Context, p *pass) error {
	used, err := r.store.Usage(ctx, p.stored.ID)
	if err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	usage := usageStatus(used, p.stored.Quota)
	if old := p.tenant.Status.Usage; old != nil {
		usage.ChangedAt = old.ChangedAt
		if equality.Semantic.DeepEqual(old, usage) {
			return nil
		}
	}
	usage.ChangedAt = metav1.NewTime(r.config.Now().Truncate(time.Second))
	p.tenant.Status.Usage = usage
	return nil
}

func usageStatus(used tenant.Usage, hard tenant.Quota) *v1alpha1.TenantUsage {
	out := &v1alpha1.TenantUsage{
		Storage: v1alpha1.StorageUsage{Used: quantity(roundDown(used.Storage)), Hard: quantity(hard.Storage)},
		Blocked: used.Blocked,
	}
	counts := out.Counts()
	for _, r := range tenant.Resources {
		if count, ok := counts[r.Name]; ok {
			*count = v1alpha1.CountUsage{Used: r.Used(&used), Hard: *r.Limit(&hard)}
		}
	}
	return out
}

func quantity(bytes int64) resource.Quantity {
	return *resource.NewQuantity(bytes, resource.BinarySI)
}

// roundDown rounds a size down to its leading 7 bits, about two decimal digits, so
// that the status does not change with every message. Rounding up could report a
// size within the quota as over it.
func roundDown(bytes int64) int64 {
	droppedBits := max(bits.Len64(uint64(max(bytes, 0)))-7, 0)
	return bytes >> droppedBits << droppedBits
}

// spec returns the tenant to store without its identity provider: the Tenant with
// the operator's defaults.
func (r *TenantReconciler) spec(t *v1alpha1.Tenant) tenant.Spec {
	spec := tenant.Spec{
		ID:             tenant.ID(t.UID),
		Cluster:        r.config.Cluster,
		Namespace:      t.Namespace,
		Name:           t.Name,
		DisplayName:    t.Spec.DisplayName,
		Suspended:      t.Spec.Suspended,
		DeletionPolicy: deletionPolicy(t),
		Isolation:      isolation(t),
		Placement:      r.preference(t),
		TokenOverlap:   t.Spec.TokenOverlap.Duration,
		Adopt:          t.Spec.Adoption.Policy != v1alpha1.AdoptNever,
		Quota:          r.quota(t),
	}
	for _, u := range t.Spec.Users {
		spec.Users = append(spec.Users, tenant.UserSpec{Name: u.Name, Email: u.Email})
		if u.Role == v1alpha1.Administrator {
			spec.Administrators = append(spec.Administrators, u.Name)
		}
	}
	if t.Spec.OIDC != nil {
		spec.Administrators = append(spec.Administrators, t.Spec.OIDC.Administrators...)
	}
	for _, a := range t.Spec.Applications {
		spec.Applications = append(spec.Applications, applicationSpec(a))
	}
	return spec
}

func (r *TenantReconciler) quota(t *v1alpha1.Tenant) tenant.Quota {
	quota, limits := r.config.Defaults, t.Spec.Quota.Limits()
	// Listed users are explicit, and a default must not refuse them.
	quota.Users = max(quota.Users, int64(len(t.Spec.Users)))
	for _, q := range tenant.Resources {
		setIfPresent(q.Limit(&quota), limits[q.Name])
	}
	return quota
}

func setIfPresent(value, override *int64) {
	if override != nil {
		*value = *override
	}
}

func deletionPolicy(t *v1alpha1.Tenant) tenant.DeletionPolicy {
	if t.Spec.DeletionPolicy == v1alpha1.Delete {
		return tenant.Delete
	}
	return tenant.Retain // also when unset: purging requires an explicit policy
}
