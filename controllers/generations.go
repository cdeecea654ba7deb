package controllers

import (
	"fmt"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// setGenerationLowered reports generations below those of the current credentials, as after an older manifest was
// applied. The credentials stay valid and everything else in the manifest is applied, so Ready does not depend on it.
func (p *pass) setGenerationLowered() {
	var lowered []string
	compare := func(subject, field string, specified, current int64) {
		if specified = max(specified, 1); specified < current {
			lowered = append(lowered, fmt.Sprintf("%s of %s is %d and not %d", field, subject, specified, current))
		}
	}
	for _, u := range p.tenant.Spec.Users {
		compare(subject(u.Name), "tokenGeneration", u.TokenGeneration, p.userStatus(u.Name).TokenGeneration)
	}
	for _, a := range p.tenant.Spec.Applications {
		holder := tenant.KeyHolder(a.Name)
		compare(subject(holder), "tokenGeneration", a.TokenGeneration, p.userStatus(holder).TokenGeneration)
	}
	for _, w := range p.tenant.Spec.Webhooks {
		compare("webhook "+w.Name, "secretGeneration", w.SecretGeneration, p.webhookGeneration(w.Name))
	}
	if len(lowered) == 0 {
		p.removeCondition(v1alpha1.GenerationLowered)
		return
	}
	p.setCondition(v1alpha1.GenerationLowered, true, v1alpha1.ReasonBelowCurrent,
		"%s; the current credentials stay valid; set the current generation, or a higher one to replace the credentials",
		listSome(lowered))
}

// webhookGeneration returns the generation of a webhook's current signing secret, 0 if there is none.
func (p *pass) webhookGeneration(name string) int64 {
	for _, w := range p.tenant.Status.Webhooks {
		if w.Name == name {
			return w.SecretGeneration
		}
	}
	return 0
}
