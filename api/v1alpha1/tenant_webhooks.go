package v1alpha1

// TenantWebhook is an endpoint that receives the changes of the tenant as signed events.
type TenantWebhook struct {
	// name is unique among the tenant's webhooks: lower-case letters and digits, separated
	// by single dots. Dashes are not allowed, as in user names. Required, no default.
	// Immutable: another name is another webhook.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+([.][a-z0-9]+)*$')",message="a webhook name must consist of lower-case letters and digits, separated by single dots; dashes are not allowed"
	// +required
	Name string `json:"name"`

	// url is the address to which events are posted, with https. http is possible only to
	// networks that the platform administrator allows. Required, no default. Mutable: the
	// new endpoint receives the events that were not delivered to the old one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2000
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['https', 'http'] && url(self).getHostname() != '' && !self.contains('#') && !self.matches('^[^/]*//[^/?]*[@%]')",message="url must be a URL such as https://acme.test/events, without user, zone and fragment"
	// +required
	URL string `json:"url"`

	// events are the events to deliver: verbs of the audit log such as memory.create, kinds
	// such as memory.*, or * for everything. Default: *. Mutable.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:Enum={"*","memory.*","bucket.*","conversation.*","import.*","account.*","session.*","token.*","password.*","app.*","user.*","application.*","tenant.*","webhook.*","index.*","audit.*","erasure.*","erasures.*","memory.create","memory.update","memory.delete","memory.undelete","memory.merge","memory.unmerge","memory.restore","memory.extract","bucket.create","bucket.update","bucket.delete","conversation.store","conversation.update","conversation.delete","conversation.undelete","import.create","import.reject","import.finish","account.export","account.delete","session.create","session.delete","session.link","token.create","token.revoke","password.update","app.connect","app.token","app.disconnect","user.create","user.update","user.activate","user.deactivate","user.delete","user.erase","application.create","application.update","application.delete","tenant.create","tenant.update","tenant.suspend","tenant.resume","tenant.quota","tenant.adopt","tenant.retire","tenant.delete","tenant.erase","tenant.domains","tenant.readmit","tenant.copy","tenant.reassign","tenant.revoke","webhook.create","webhook.update","webhook.replay","webhook.delete","index.rebuild","index.repair","audit.export","erasure.repeat","erasures.stop"}
	// +kubebuilder:default={"*"}
	// +listType=set
	// +optional
	Events []string `json:"events,omitempty"`

	// secretGeneration replaces the signing secret when it is raised. A lower value changes
	// nothing, and condition GenerationLowered reports it. Default: 1. Mutable.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +kubebuilder:default=1
	// +optional
	SecretGeneration int64 `json:"secretGeneration,omitempty"`
}

// WebhookStatus describes a webhook and its Secret. It never holds the signing secret.
type WebhookStatus struct {
	// name is the webhook's name.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// secret is the name of the webhook's Secret.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Secret string `json:"secret,omitempty"`
	// fingerprint is the first 12 digits of the signing secret's SHA-256.
	// +kubebuilder:validation:MaxLength=12
	// +optional
	Fingerprint string `json:"fingerprint,omitempty"`
	// secretGeneration is the secretGeneration of the spec that the signing secret was
	// generated for.
	// +optional
	SecretGeneration int64 `json:"secretGeneration,omitempty"`
	// message says why the webhook is not stored, or why its events are not delivered.
	// Empty if nothing failed. "not connected yet" until a connection to the address was made.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
}
