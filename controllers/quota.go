package controllers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// applyStore makes the rows of the tenant, its users and its quota what the
// spec says.
func (r *TenantReconciler) applyStore(ctx context.Context, p *pass) error {
	spec := r.spec(p.tenant)
	stored, err := r.store.Apply(ctx, spec)
	if fault.Is(err, fault.Conflict) {
		reason := v1alpha1.ReasonClaimRequired
		if spec.Claim != "" {
			reason = v1alpha1.ReasonClaimRefused
		}
		// The store says which tenant has the name and what to do.
		p.set(v1alpha1.QuotaReady, false, reason, "%s", shown(err))
		// Unless whose name it is is gone and left nothing.
		if p.unfinished, err = r.sweepName(ctx, client.ObjectKeyFromObject(p.tenant)); err != nil {
			return err
		}
		return errHeld
	}
	if err != nil {
		p.fail(v1alpha1.QuotaReady, err)
		return fmt.Errorf("apply tenant: %w", err)
	}
	p.stored = stored
	p.tenant.Status.ID = string(stored.ID)
	p.set(v1alpha1.QuotaReady, true, v1alpha1.ReasonApplied, "tenant, users and quota are stored")
	p.noteOIDC()
	return nil
}

// noteOIDC says whether the tenant has domains and they are its own.
func (p *pass) noteOIDC() {
	p.tenant.Status.OIDCUsers = p.stored.People
	switch oidc := p.tenant.Spec.OIDC; {
	case oidc == nil:
		meta.RemoveStatusCondition(&p.tenant.Status.Conditions, v1alpha1.OIDCReady)
	case len(p.stored.DomainsTaken) > 0:
		p.set(v1alpha1.OIDCReady, false, v1alpha1.ReasonDomainTaken,
			"people of %s sign in to another Tenant, which named it first for this issuer: take it out of one of them; it is tried again",
			strings.Join(p.stored.DomainsTaken, ", "))
	case len(oidc.EmailDomains) == 0:
		p.set(v1alpha1.OIDCReady, false, v1alpha1.ReasonNoDomains,
			"nobody signs in to this Tenant: name the domains of its people in spec.oidc.emailDomains")
	default: // the issuers that are trusted are known to the API servers only
		p.set(v1alpha1.OIDCReady, true, v1alpha1.ReasonApplied,
			"these domains are this tenant's; people sign in where the host trusts the issuer (docs/sso.md)")
	}
}

// refreshUsage notes what the tenant holds.
func (r *TenantReconciler) refreshUsage(ctx context.Context, p *pass) error {
	used, err := r.store.Usage(ctx, p.stored.ID)
	if err != nil {
		return fmt.Errorf("read usage: %w", err) // the last one seen stays
	}
	now := usage(used, p.stored.Quota)
	if was := p.tenant.Status.Usage; was != nil {
		now.ChangedAt = was.ChangedAt
		if *was == *now {
			return nil
		}
	}
	now.ChangedAt = metav1.NewTime(r.config.Now().Truncate(time.Second))
	p.tenant.Status.Usage = now
	return nil
}

func usage(used tenant.Usage, hard tenant.Quota) *v1alpha1.TenantUsage {
	return &v1alpha1.TenantUsage{
		Memories:      fmt.Sprintf("%d/%d", used.Memories, hard.Memories),
		Conversations: fmt.Sprintf("%d/%d", used.Conversations, hard.Conversations),
		Users:         fmt.Sprintf("%d/%d", used.Users, hard.Users),
		Storage:       held(used.Storage) + "/" + quantity(hard.Storage),
		Blocked:       used.Blocked,
	}
}

func quantity(bytes int64) string {
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}

// held writes what is used of storage with at most one decimal, so that not
// each message changes the status. It is rounded down: what fits the quota
// never looks as if it did not.
func held(bytes int64) string {
	units := []string{"Ki", "Mi", "Gi", "Ti", "Pi"}
	unit, size := "", int64(1)
	for _, next := range units {
		if bytes < size<<10 {
			break
		}
		unit, size = next, size<<10
	}
	whole, tenth := bytes/size, bytes%size*10/size
	if tenth == 0 {
		return fmt.Sprintf("%d%s", whole, unit)
	}
	return fmt.Sprintf("%d.%d%s", whole, tenth, unit)
}

// spec returns what to store: the Tenant with the operator's defaults.
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
		TokenOverlap:   t.Spec.TokenOverlap.Duration,
		Claim:          tenant.ID(t.Spec.Claim),
		Quota:          r.quota(t),
	}
	if oidc := t.Spec.OIDC; oidc != nil {
		spec.OIDC = tenant.OIDC{Issuer: oidc.Issuer, Domains: oidc.EmailDomains}
	}
	for _, u := range t.Spec.Users {
		spec.Users = append(spec.Users, tenant.UserSpec{Name: u.Name, Email: u.Email})
	}
	return spec
}

func (r *TenantReconciler) quota(t *v1alpha1.Tenant) tenant.Quota {
	quota, q := r.config.Defaults, t.Spec.Quota
	// The host listed them: its own default must not stand against that.
	quota.Users = max(quota.Users, int64(len(t.Spec.Users)))
	override(&quota.Memories, q.Memories)
	override(&quota.Conversations, q.Conversations)
	override(&quota.Users, q.Users)
	override(&quota.RequestsPerMinute, q.RequestsPerMinute)
	override(&quota.ListTokens, q.ListTokens)
	if q.Storage != nil {
		quota.Storage = q.Storage.Value()
	}
	if q.PerUser != nil {
		override(&quota.UserMemories, q.PerUser.Memories)
		override(&quota.UserConversations, q.PerUser.Conversations)
	}
	return quota
}

func override(value, with *int64) {
	if with != nil {
		*value = *with
	}
}

func deletionPolicy(t *v1alpha1.Tenant) tenant.DeletionPolicy {
	if t.Spec.DeletionPolicy == v1alpha1.Delete {
		return tenant.Delete
	}
	return tenant.Retain // also when unset: never purge what nobody asked to
}
