package audit

// Verbs are all verbs, in the order of their declarations.
var Verbs = []Verb{
	MemoryCreate, MemoryUpdate, MemoryDelete, MemoryUndelete, MemoryMerge, MemoryUnmerge, MemoryRestore, MemoryExtract,
	BucketCreate, BucketUpdate, BucketDelete, ConversationStore, ConversationUpdate, ConversationDelete,
	ConversationUndelete, ImportCreate, ImportReject, ImportFinish, AccountExport, AccountDelete, SessionCreate,
	SessionDelete, SessionLink, TokenCreate, TokenRevoke, PasswordUpdate, AppConnect, AppToken, AppDisconnect,
	UserCreate, UserUpdate, UserActivate, UserDeactivate, UserDelete, UserErase, ApplicationCreate, ApplicationUpdate,
	ApplicationDelete, TenantCreate, TenantUpdate, TenantSuspend, TenantResume, TenantQuota, TenantAdopt, TenantRetire,
	TenantDelete, TenantErase, TenantDomains, TenantReadmit, TenantCopy, TenantReassign, TenantRevoke, WebhookCreate,
	WebhookUpdate, WebhookReplay, WebhookDelete, IndexRebuild, IndexRepair, AuditExport, ErasureRepeat, ErasuresStop,
}
