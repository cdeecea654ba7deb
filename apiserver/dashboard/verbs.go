package dashboard

import (
	"strings"

	"github.com/mnemo-dev/mnemo/internal/audit"
)

// phrases describe verbs to the user, some with the number of objects.
var phrases = map[audit.Verb]message{
	audit.MemoryCreate:         msg("Added %d memories"),
	audit.MemoryExtract:        msg("Sent a conversation for fact extraction"),
	audit.MemoryUpdate:         msg("Edited or moved %d memories"),
	audit.MemoryDelete:         msg("Deleted %d memories"),
	audit.MemoryRestore:        msg("Imported %d memories"),
	audit.MemoryUndelete:       msg("Restored %d memories"),
	audit.MemoryMerge:          msg("Merged %d memories"),
	audit.MemoryUnmerge:        msg("Restored %d merged memories"),
	audit.ConversationUndelete: msg("Restored %d conversations"),
	audit.BucketCreate:         msg("Created %d buckets"),
	audit.BucketUpdate:         msg("Changed %d buckets"),
	audit.BucketDelete:         msg("Deleted %d buckets"),
	audit.ConversationStore:    msg("Stored %d conversations"),
	audit.ConversationUpdate:   msg("Pinned, excluded or included %d conversations"),
	audit.ConversationDelete:   msg("Deleted %d conversations"),
	audit.ImportCreate:         msg("Uploaded a file to import"),
	audit.ImportReject:         msg("Skipped a conversation that is too large"),
	audit.ImportFinish:         msg("Finished an import"),
	audit.AccountExport:        msg("Exported all data"),
	audit.AccountDelete:        msg("Erased all data"),
	audit.SessionCreate:        msg("Signed in"),
	audit.SessionDelete:        msg("Signed out"),
	audit.SessionLink:          msg("Created a one-time sign-in link"),
	audit.TokenCreate:          msg("Created a token"),
	audit.TokenRevoke:          msg("Revoked %d tokens"),
	audit.PasswordUpdate:       msg("Created a new password"),
	audit.AppConnect:           msg("Connected an app"),
	audit.AppToken:             msg("Renewed an app’s access"),
	audit.AppDisconnect:        msg("Disconnected an app"),
	audit.UserCreate:           msg("Created this account"),
	audit.UserUpdate:           msg("Changed the email address of this account"),
	audit.UserActivate:         msg("Enabled this account"),
	audit.UserDeactivate:       msg("Disabled this account"),
	audit.UserDelete:           msg("Removed this account"),
	audit.UserErase:            msg("Erased this account"),
}

// phrase returns what a change did to n objects. Verbs of the tenant, which have no
// phrase, are not in the records of a user.
func phrase(verb audit.Verb, n int) message {
	p, ok := phrases[verb]
	if !ok {
		kind, action, _ := strings.Cut(string(verb), ".")
		return msg("Changed %s (%s)", kind, action)
	}
	if strings.Contains(p.key, "%d") {
		p.args = []any{n}
	}
	return p
}
