package dashboard

import (
	"strings"

	"github.com/mnemo-dev/mnemo/internal/audit"
)

// phrases describe verbs to the user. A noun follows those that end with a space.
var phrases = map[audit.Verb]struct{ text, noun string }{
	audit.MemoryCreate:         {"Added ", "memory"},
	audit.MemoryExtract:        {"Sent a conversation to remember", ""},
	audit.MemoryUpdate:         {"Edited or moved ", "memory"},
	audit.MemoryDelete:         {"Deleted ", "memory"},
	audit.MemoryRestore:        {"Imported ", "memory"},
	audit.MemoryUndelete:       {"Restored ", "memory"},
	audit.ConversationUndelete: {"Restored ", "conversation"},
	audit.BucketCreate:         {"Created ", "bucket"},
	audit.BucketUpdate:         {"Changed ", "bucket"},
	audit.BucketDelete:         {"Deleted ", "bucket"},
	audit.ConversationStore:    {"Stored ", "conversation"},
	audit.ConversationUpdate:   {"Pinned, excluded or included ", "conversation"},
	audit.ConversationDelete:   {"Deleted ", "conversation"},
	audit.ImportCreate:         {"Uploaded a file to import", ""},
	audit.ImportReject:         {"Skipped a conversation that is too large", ""},
	audit.ImportFinish:         {"Finished an import", ""},
	audit.AccountExport:        {"Exported all data", ""},
	audit.AccountDelete:        {"Erased all data", ""},
	audit.SessionCreate:        {"Signed in", ""},
	audit.SessionDelete:        {"Signed out", ""},
	audit.SessionLink:          {"Created a one-time sign-in link", ""},
	audit.TokenCreate:          {"Created a token", ""},
	audit.TokenRevoke:          {"Revoked ", "token"},
	audit.AppConnect:           {"Connected an app", ""},
	audit.AppToken:             {"Renewed an app’s access", ""},
	audit.AppDisconnect:        {"Disconnected an app", ""},
	audit.UserCreate:           {"Created this account", ""},
	audit.UserUpdate:           {"Changed the email address of this account", ""},
	audit.UserActivate:         {"Enabled this account", ""},
	audit.UserDeactivate:       {"Disabled this account", ""},
	audit.UserDelete:           {"Removed this account", ""},
	audit.UserErase:            {"Erased this account", ""},
}

// phrase returns what a change did to n objects. Verbs of the tenant, which have no
// phrase, are not in the records of a user.
func phrase(verb audit.Verb, n int) string {
	p, ok := phrases[verb]
	if !ok {
		kind, action, _ := strings.Cut(string(verb), ".")
		return "Changed " + kind + " (" + action + ")"
	}
	if p.noun == "" {
		return p.text
	}
	return p.text + plural(n, p.noun)
}
