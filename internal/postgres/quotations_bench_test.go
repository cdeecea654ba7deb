package postgres_test

import (
	"fmt"
	"testing"
)

// BenchmarkQuotations stores a message with 500 quotations, the most that are compared, each with other words and of
// another length than the one before, for a user with 20,000 memories and 20,000 messages of the same day.
func BenchmarkQuotations(b *testing.B) {
	for _, what := range []string{"none", "memories", "messages"} {
		b.Run(what, func(b *testing.B) {
			s := setup(b, nil)
			scope := s.users[0]
			s.remember(b, scope, seat, nil)
			kept := s.upsert(b, scope, newConversation("kept", 0, 1)).Conversation
			exec(b, s.owner, `insert into memories (tenant_id, user_id, id, seq, bucket_id, text, tokens)
				select $1, $2, gen_random_uuid(), 100 + n, (select id from buckets where tenant_id = $1 and user_id = $2 limit 1), 'The user has kept number ' || n || ' of the things to do', 10
				from generate_series(1, 20000) n`, scope.Tenant, scope.User)
			exec(b, s.owner, `insert into messages (tenant_id, user_id, conversation_id, seq, external_id, sender, text, tokens, created_at)
				select $1, $2, $3, 100 + n, 'n' || n, 'human', repeat('Something about ' || md5(n::text) || ' of the things to do. ', 20), 10, '2025-05-09T10:00:00Z'
				from generate_series(1, 20000) n`, scope.Tenant, scope.User, kept.ID)
			exec(b, s.owner, "vacuum analyze memories")
			exec(b, s.owner, "vacuum analyze messages")
			line, heading := "other", ""
			switch what {
			case "memories":
				line, heading = "memory", "Memories\n"
			case "messages":
				line, heading = "human", "Conversation a (2025-05-09)\n"
			}
			text := heading
			for i := range 500 {
				text += fmt.Sprintf("[%d] %s: %s\n", i+1, line, fmt.Sprintf("%d things that the user has kept for the future", 90000+i)[:8+i%38])
			}
			defer exec(b, s.owner, "delete from memories where seq > 100") // before the counters are compared
			defer exec(b, s.owner, "delete from messages where seq > 100")
			percentiles(b, func(i int) { s.upsert(b, scope, pasted(fmt.Sprint("p", i), text)) })
		})
	}
}
