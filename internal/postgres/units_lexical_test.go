package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// answers are memories with a natural-language question about each.
var answers = []struct{ question, text string }{
	{"What did Nora buy at the flea market?", "2025-01-04 Nora found a brass telescope at the flea market and bought it for forty euros."},
	{"Which allergy does my brother have?", "2025-01-11 My brother is allergic to walnuts, so the cake must be made without them."},
	{"When is the dentist appointment?", "2025-01-15 The dentist moved my appointment to the third of March at nine."},
	{"Where did we leave the spare key?", "2025-01-20 The spare key is under the blue flower pot behind the shed."},
	{"Who taught Paolo to play the cello?", "2025-02-02 Paolo learned the cello from his grandmother in Trieste."},
	{"What is the wifi password of the cabin?", "2025-02-03 Cabin wifi: the password is written on the fuse box."},
	{"How long does the sourdough need to rise?", "2025-02-09 The sourdough rises for fourteen hours in the cellar before baking."},
	{"Why did the car fail its inspection?", "2025-02-14 The car failed inspection because the left brake light was broken."},
	{"Which museum had the dinosaur skeleton?", "2025-02-21 In Frankfurt the Senckenberg museum shows a complete dinosaur skeleton."},
	{"What does Aylin want for her birthday?", "2025-03-01 Aylin wishes for a pottery course for her birthday in June."},
	{"Which medicine makes the cat sleepy?", "2025-03-05 The vet said the cat gets sleepy from the new thyroid medicine."},
	{"How much was the electricity bill in winter?", "2025-03-07 Our winter electricity bill came to 412 euros, more than last year."},
	{"What is the name of Henrik's sailing boat?", "2025-03-12 Henrik named his sailing boat Marigold after a song."},
	{"Which trail did we hike near the glacier?", "2025-03-19 We hiked the Panorama trail along the glacier and saw two ibexes."},
	{"Who recommended the accountant?", "2025-03-22 Mrs Okafor from choir recommended her accountant to me."},
	{"What did the plumber replace?", "2025-04-01 The plumber replaced the valve below the kitchen sink."},
	{"Where does Ines keep her bees?", "2025-04-04 Ines keeps four hives of bees on the roof of the library."},
	{"Which chess opening does Viktor prefer?", "2025-04-08 Viktor always answers with the Caro-Kann when we play chess."},
	{"What colour will the nursery be painted?", "2025-04-15 We agreed to paint the nursery in a pale green."},
	{"How did the job interview in Lisbon go?", "2025-04-18 The interview in Lisbon went well; they want a second talk about the job."},
	{"Which tree fell in the storm?", "2025-04-22 Last night's storm brought down the old cherry tree."},
	{"What spice is missing in the curry?", "2025-04-27 The curry lacked fenugreek, next time grind some fresh."},
	{"Who is going to water the plants in August?", "2025-05-02 In August Tomasz will water our plants while we are away."},
	{"What time does the night train leave?", "2025-05-06 The night train to Vienna leaves at 22:47 from platform nine."},
	{"Which podcast did Leila start?", "2025-05-09 Leila started a podcast about forgotten inventors."},
}

// A conversation is found by the words of its title, which is the heading of the first message with text that is not a system message; after a change, by those of the new one.
func TestLexicalFindsTitles(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	u := newConversation("a", 0, 7)
	u.Messages[0].Sender, u.Messages[1].Sender, u.Messages[2].Text = chat.System, chat.System, ""
	for _, title := range []string{"Zanzibar itinerary", "大阪の夏祭り"} {
		u.Title = title
		conversation := b.upsert(t, scope, u).Conversation.ID
		for query, want := range map[string]bool{"itinerary for Zanzibar": title[0] == 'Z', "夏祭り": title[0] != 'Z'} {
			q := retrieve.Request{Kind: retrieve.Chat, Text: query, Limit: 10}
			hits, err := b.Lexical(t.Context(), scope, q)
			if err != nil {
				t.Fatal(err)
			}
			if !want {
				if len(hits) > 0 {
					t.Errorf("title %q: %q finds %d units, want none", title, query, len(hits))
				}
				continue
			}
			described, err := b.Describe(t.Context(), scope, q, collectIDs(hits))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range described {
				got = append(got, fmt.Sprintf("%s %d %q %q", d.Owner, d.Seq, d.Text, d.Heading))
			}
			slices.Sort(got)
			want := []string{
				fmt.Sprintf("%s 3 %q %q", conversation, u.Messages[3].Text, title),
				conversation + ` 4 "" ""`, // a neighbor; the message before has no text
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("title %q: %q finds (-want +got):\n%s", title, query, diff)
			}
		}
	}
}

func collectIDs(hits []retrieve.Hit) (ids []retrieve.UnitID) {
	for _, h := range hits {
		ids = append(ids, h.ID)
	}
	return ids
}

func TestLexicalFindsEveryAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	owner := map[string]string{}
	for i, a := range answers {
		owner[a.question] = b.remember(t, scope, a.text, nil)
		b.remember(t, b.users[1+i%3], a.text, nil) // other users store the same
	}
	rank := func(q retrieve.Request, memory string) int {
		t.Helper()
		hits, err := b.Lexical(t.Context(), scope, q)
		if err != nil {
			t.Fatal(err)
		}
		found, err := b.Resolve(t.Context(), scope, q, ids(hits))
		if err != nil || len(found) != len(hits) {
			t.Fatalf("Resolve of %d = %d, %v", len(hits), len(found), err)
		}
		return slices.IndexFunc(hits, func(h retrieve.Hit) bool { return b.ownerOf(t, h.ID) == memory })
	}
	for _, size := range []string{"small account", "large account"} {
		for _, a := range answers {
			q := retrieve.Request{Kind: retrieve.Memory, Text: a.question, Limit: 10}
			if at := rank(q, owner[a.question]); at < 0 || at > 2 {
				t.Errorf("%s: the answer to %q has rank %d, want 0 to 2", size, a.question, at)
			}
		}
		b.insertUnits(t, scope, owner[answers[0].question], 600, "null")
	}
}

func ids(hits []retrieve.Hit) (out []retrieve.UnitID) {
	for _, h := range hits {
		out = append(out, h.ID)
	}
	return out
}

// Beyond 5,000 units, only those with enough of the words are ranked. They are the best ones of all, and are searched in the index once or twice.
func TestLexicalRanksManyUnits(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	id := b.remember(t, scope, "Zebras graze", nil)
	// Every unit has 40 different words, so that its score is the weight of the question's words in it. A word with a higher number is rarer.
	exec(t, b.owner, `insert into units (tenant_id, user_id, kind, group_id, memory_id, span_start, span_end, tsv, embedding, generation_id)
		select $1, $2, 1, 1 + n % 2, $3, 0, 1, to_tsvector('english', (select string_agg('lorem' || word, ' ') from (
			select word from (select i, (3000 * ((hashint8extended(200 * n + i, 1) & 1048575) / 1048576.0) ^ 3)::int as word from generate_series(1, 200) i) r
			group by word order by min(i) limit 40) w)), decode(repeat('0028', 384), 'hex'), 0
		from generate_series(1, 9000) n`, scope.Tenant, scope.User, id)
	exec(t, b.owner, "vacuum analyze units")
	b.checkManyUnits(t, scope, 0)
	b.checkLimit(t, scope, func(read int) bool { return read > 5000 })
	// If the user has many more memories, units are not counted, and the first share of the weight is a worse estimate.
	counted := b.count(t, "select memories from users where id = $1", scope.User)
	exec(t, b.owner, "update users set memories = 30000 where id = $1", scope.User)
	b.checkManyUnits(t, scope, 1)
	b.checkLimit(t, scope, func(read int) bool { return read <= 5000 })
	exec(t, b.owner, "update users set memories = $2 where id = $1", scope.User, counted)
}

// checkLimit checks that as many units as requested are ranked, if as many have enough of the words, and how many are read for that.
func (b *testBundle) checkLimit(t *testing.T, scope tenant.Scope, allowed func(read int) bool) {
	t.Helper()
	for first := 22; first <= 46; first += 6 {
		query := ""
		for word := first; word < first+6; word++ {
			query += fmt.Sprintf(" lorem%d", word)
		}
		ranked, read := b.readUnits(t, scope, "select unit_id from lexical_ranking($1, $2, 1::smallint, $4, null, null, null, null, $3, 400, null)", query)
		if len(ranked) != 400 || !allowed(read) {
			t.Errorf("%s: %d units are ranked, want 400; %d rows and index entries are read", query, len(ranked), read)
		}
	}
}

// checkManyUnits checks the ranking of the user of TestLexicalRanksManyUnits, which may need more searches than expected.
func (b *testBundle) checkManyUnits(t *testing.T, scope tenant.Scope, extra int) {
	t.Helper()
	for name, test := range map[string]struct {
		query    string
		group    int64
		searches int // at most
	}{
		"rare words":             {query: "lorem1700 lorem1900 lorem2100 lorem2300 lorem2500 lorem2900", searches: 1},
		"rare words of a bucket": {query: "lorem1700 lorem1900 lorem2100 lorem2300 lorem2500 lorem2900", group: 2, searches: 1},
		"frequent words":         {query: "lorem20 lorem25 lorem30 lorem35 lorem40 lorem45", searches: 2},
		"both":                   {query: "lorem20 lorem60 lorem90 lorem400 lorem1500 lorem2800", searches: 1},
		"one word":               {query: "lorem60", searches: 1},
		"no word":                {query: "ipsum dolor"},
	} {
		const function = "select unit_id from lexical_ranking($1, $2, 1::smallint, $4, null, null, null, null, $3, 10, null)"
		best, searches := b.searchWords(t, scope, function, test.query, test.group)
		_, terms := b.searchWords(t, scope, "select 0 from lexical_terms($1, $2, 1::smallint, $3) where $4::bigint is not null", test.query, test.group)
		all, _ := b.searchWords(t, scope, `select u.id from lexical_terms($1, $2, 1::smallint, $3) t join units u
			on u.tenant_id = $1 and u.user_id = $2 and $4::bigint in (0, u.group_id)
			cross join lateral (select sum(idf * ts_rank(u.tsv, term)) / (1 + ln(length(u.tsv))) as score from unnest(t.terms, t.idf) w (term, idf)) s
			where s.score > 0 order by s.score desc, u.id desc limit 10`, test.query, test.group)
		if len(best) == 0 && len(all) > 0 || !slices.Equal(best, all[:min(len(best), len(all))]) {
			t.Errorf("%s: the best units are %v, want the first ones of %v", name, best, all)
		}
		if searches -= terms; searches > test.searches+extra {
			t.Errorf("%s: the index was searched %d times, want at most %d", name, searches, test.searches)
		}
	}
}

// Only the newest 5,000 units are ranked if all words of the query are common.
func TestLexicalRanksNewestUnits(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope, v := b.users[0], randomUnit(rand.New(rand.NewPCG(29, 30)))
	b.insertUnits(t, scope, b.remember(t, scope, "Zebras graze", func(string) []float32 { return v }), 6000, "now()")
	exec(t, b.owner, "update units set tsv = tsv || 'lorem1:41,42,43,44' where id <= (select min(id) + 500 from units)") // best, but too old
	for _, query := range []string{"lorem0", "lorem1", "lorem0 lorem1"} {
		q := retrieve.Request{Kind: retrieve.Memory, Text: query, Limit: 50}
		oldest := b.count(t, "select min(id) from (select id from units order by id desc limit 5000) n")
		hits, err := b.Lexical(t.Context(), scope, q)
		if err != nil || len(hits) != 50 || slices.ContainsFunc(hits, func(h retrieve.Hit) bool { return int(h.ID) < oldest }) {
			t.Errorf("%q: %v, %v, want 50 units with ids from %d", query, hits, err, oldest)
		}
	}
}

// searchWords returns the result of a function for a query, and how often it searches the index of words.
func (b *testBundle) searchWords(t *testing.T, scope tenant.Scope, function, query string, group int64) (found []retrieve.UnitID, searches int) {
	t.Helper()
	return b.observeWords(t, scope, `pg_stat_get_xact_numscans(oid)) from pg_class where relname like 'units\_%\_user\_id\_tsv\_idx%'`, function, query, group)
}

// readUnits returns the result of a function for a query, and the number of rows and index entries of units that it reads.
func (b *testBundle) readUnits(t *testing.T, scope tenant.Scope, function, query string) (found []retrieve.UnitID, read int) {
	t.Helper()
	return b.observeWords(t, scope, `pg_stat_get_xact_tuples_returned(oid)) from pg_class where relname like 'units\_%'`, function, query, 0)
}

// observeWords returns the result of a function for a query, and the increase of the sum of a statistic of relations.
func (b *testBundle) observeWords(t *testing.T, scope tenant.Scope, statistic, function, query string, group int64) (found []retrieve.UnitID, increase int) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), b.owner, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "select set_config('mnemo.tenant', $1, true), set_config('mnemo.user', $2, true)", scope.Tenant, fmt.Sprint(scope.User)); err != nil {
			return err
		}
		var before, after int
		if err := tx.QueryRow(t.Context(), "select sum("+statistic).Scan(&before); err != nil {
			return err
		}
		rows, err := tx.Query(t.Context(), function, scope.Tenant, scope.User, query, group)
		if err != nil {
			return err
		}
		if found, err = pgx.CollectRows(rows, pgx.RowTo[retrieve.UnitID]); err != nil {
			return err
		}
		err = tx.QueryRow(t.Context(), "select sum("+statistic).Scan(&after)
		increase = after - before
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, increase
}

func TestLexicalFilters(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	memory := b.unitsOf(t, b.remember(t, scope, "Zebras graze", nil))[0]
	in := newConversation("a", 0, 1)
	in.Messages[0].Text = "Zebras sleep"
	chat := b.unitsOf(t, b.upsert(t, scope, in).Conversation.ID)[0]
	exec(t, b.owner, "update memories set created_at = $1", start)
	group := retrieve.GroupOf("custom")
	for name, test := range map[string]struct {
		query retrieve.Request
		want  []retrieve.UnitID
	}{
		"memories":       {retrieve.Request{Kind: retrieve.Memory}, []retrieve.UnitID{memory}},
		"chats":          {retrieve.Request{Kind: retrieve.Chat}, []retrieve.UnitID{chat}},
		"platform":       {retrieve.Request{Kind: retrieve.Chat, Group: group}, []retrieve.UnitID{chat}},
		"other platform": {retrieve.Request{Kind: retrieve.Chat, Group: group + 1}, nil},
		"from":           {retrieve.Request{Kind: retrieve.Chat, From: start}, []retrieve.UnitID{chat}},
		"from later":     {retrieve.Request{Kind: retrieve.Chat, From: start.Add(1e6)}, nil},
		"to earlier":     {retrieve.Request{Kind: retrieve.Memory, To: start}, nil},
		"to":             {retrieve.Request{Kind: retrieve.Memory, From: start, To: start.Add(1e6)}, []retrieve.UnitID{memory}},
	} {
		test.query.Text, test.query.Limit = "where are the zebras?", 5
		hits, err := b.Lexical(t.Context(), scope, test.query)
		if err != nil || !slices.Equal(ids(hits), test.want) {
			t.Errorf("%s: %v, %v, want %v", name, hits, err, test.want)
		}
	}
	for _, text := range []string{"", "the of and", `'; drop \ & | ! <-> (:*`, `it's "quoted" \zebr`, strings.Repeat("zebra crossing ", 3000)} {
		hits, err := b.Lexical(t.Context(), scope, retrieve.Request{Kind: retrieve.Memory, Text: text, Limit: 5})
		if want := strings.Contains(text, "zebra"); err != nil || (len(hits) == 1) != want {
			t.Errorf("%.20q: %v, %v", text, hits, err)
		}
	}
}

func TestLexicalSkipsInactiveAndDeletedUnits(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	id := b.upsert(t, scope, newConversation("a", 0, 3)).Conversation.ID
	q := retrieve.Request{Kind: retrieve.Chat, Text: "says number", Limit: 5}
	exec(t, b.owner, "update units set active = false")
	if hits, err := b.Lexical(t.Context(), scope, q); err != nil || len(hits) != 0 {
		t.Errorf("units of an inactive conversation: %v, %v, want none", hits, err)
	}
	exec(t, b.owner, "update units set active = true")
	if hits, err := b.Lexical(t.Context(), scope, q); err != nil || len(hits) != 3 {
		t.Errorf("units of an active conversation: %v, %v, want 3", hits, err)
	}
	if _, err := b.Conversations().Delete(t.Context(), scope, []string{id}); err != nil {
		t.Fatal(err)
	}
	if hits, err := b.Lexical(t.Context(), scope, q); err != nil || len(hits) != 0 {
		t.Errorf("units of a deleted conversation: %v, %v, want none", hits, err)
	}
}

// The functions run as the owner, to whom the policies do not apply. They must return only
// rows of the transaction's scope.
func TestLexicalIsIsolated(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	for _, u := range b.users {
		b.remember(t, u, "zebra", nil)
	}
	app, err := pgxpool.New(t.Context(), d.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	target := b.users[0]
	for i, u := range b.users {
		for _, user := range []string{fmt.Sprint(u.User), "*", ""} {
			var n int
			err := pgx.BeginFunc(t.Context(), app, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), "select set_config('mnemo.tenant', $1, true), set_config('mnemo.user', $2, true)", u.Tenant, user)
				if err != nil {
					return err
				}
				return tx.QueryRow(t.Context(), "select count(*) from lexical_ranking($1, $2, 1::smallint, 0, null, null, null, null, 'zebra', 9, null)",
					target.Tenant, target.User).Scan(&n)
			})
			want := 0
			if i == 0 && user != "*" && user != "" {
				want = 1
			}
			if err != nil || n != want {
				t.Errorf("as user %q in the tenant of user %d: found %d, want %d, %v", user, i, n, want, err)
			}
		}
	}
}

// Above 5,000 units only the index on (user_id, tsv) is fast enough.
func TestLexicalUsesTheIndex(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	scope := b.users[0]
	first := b.remember(t, scope, "start", nil)
	b.insertUnits(t, scope, first, 8000, "null")
	other := b.userInPartitionOf(t, scope)
	b.insertUnits(t, other, b.remember(t, other, "start", nil), 40000, "null")
	want := b.remember(t, scope, "A gazelle met lorem1 and lorem2 at the waterhole", nil)
	// Autovacuum does this later. Without statistics, the planner scans the table to count the user's units.
	exec(t, b.owner, "vacuum analyze units")
	app, err := pgxpool.New(t.Context(), d.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	var unit retrieve.UnitID
	var words, tables int
	err = pgx.BeginFunc(t.Context(), app, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "select set_config('mnemo.tenant', $1, true), set_config('mnemo.user', $2, true)",
			scope.Tenant, fmt.Sprint(scope.User))
		if err != nil {
			return err
		}
		err = tx.QueryRow(t.Context(), "select unit_id from lexical_ranking($1, $2, 1::smallint, 0, null, null, null, null, $3, 1, null)",
			scope.Tenant, scope.User, "Where did the gazelle meet lorem1 and lorem2?").Scan(&unit)
		if err != nil {
			return err
		}
		// The number of scans in this transaction.
		return tx.QueryRow(t.Context(), `select
			sum(pg_stat_get_xact_numscans(oid)) filter (where relname like 'units\_%\_user\_id\_tsv\_idx%'),
			sum(pg_stat_get_xact_numscans(oid)) filter (where relname like 'units\__')
			from pg_class`).Scan(&words, &tables)
	})
	if err != nil {
		t.Fatal(err)
	}
	if b.ownerOf(t, unit) != want {
		t.Errorf("found unit %d, want the one about the gazelle", unit)
	}
	if words < 2 {
		t.Errorf("index scans = %d, want at least 2", words)
	}
	if tables > 0 {
		t.Errorf("table scans = %d, want 0", tables)
	}
}

// userInPartitionOf creates a user whose units are in the same partition as those of the
// given user. PostgreSQL counts the units of a user with a partition of its own by scanning
// that partition.
func (b *testBundle) userInPartitionOf(t *testing.T, of tenant.Scope) (out tenant.Scope) {
	t.Helper()
	spec := tenanttest.NewSpec()
	spec.Quota.Users, spec.Users = 100, nil
	for i := range spec.Quota.Users {
		spec.Users = append(spec.Users, tenant.UserSpec{Name: fmt.Sprint("user-", i)})
	}
	if _, err := b.Apply(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	err := b.owner.QueryRow(t.Context(), `select u.tenant_id, u.id from users u, generate_series(0, 7) r
		where u.tenant_id <> $1 and satisfies_hash_partition('units'::regclass, 8, r, u.id)
			and satisfies_hash_partition('units'::regclass, 8, r, $2::bigint) limit 1`, of.Tenant, of.User).Scan(&out.Tenant, &out.User)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// asian are memories in languages that do not separate words by spaces, or that attach particles
// to them, with a question about each.
var asian = []struct{ question, text string }{
	{"我对什么食物过敏？", "2025-01-04 医生说我对花生过敏，所以不能吃沙嗲酱。"},
	{"备用钥匙在哪里", "2025-01-11 备用钥匙放在花园里的蓝色花盆下面。"},
	{"護照什麼時候到期", "2025-01-15 我的護照明年三月到期，要提早去換發。"},
	{"猫の名前は何ですか", "2025-01-20 黒い猫を飼い始めて、ミソという名前をつけた。"},
	{"東京タワーに登ったのはいつ？", "2025-02-02 娘と東京タワーに登り、富士山が見えた。"},
	{"アレルギー", "2025-02-03 弟はクルミのアレルギーがあるのでケーキに入れない。"},
	{"고양이는 어떤 약을 먹나요", "2025-02-09 수의사가 고양이에게 새 갑상선 약을 처방했다."},
	{"치과 예약이 언제야?", "2025-02-14 치과에서 예약을 삼월 셋째 날로 옮겼다."},
	{"집은 어디에 있나요", "2025-02-21 새로 산 집에 들어가려면 오월까지 기다려야 한다."},
	{"你还记得我上次跟你说过的去年夏天买的那辆自行车现在到底停放在什么地方了吗", "2025-03-02 自行车停放在地下室。"},
	{"Where is the 自転車?", "2025-03-01 My 自転車 is in the cellar."},
	{"แมว", "2025-03-04 ฉันเลี้ยงแมวสีเทา"},
	{"กุญแจสำรองอยู่ที่ไหน", "2025-03-05 กุญแจสำรองอยู่ใต้กระถางดอกไม้สีฟ้าในสวน"},
	{"ໝາ", "2025-03-06 ຂ້ອຍລ້ຽງໝາສີດຳ"},
	{"ឆ្មា", "2025-03-07 ខ្ញុំចិញ្ចឹមឆ្មាពណ៌ប្រផេះ"},
	{"ကြောင်", "2025-03-08 ကျွန်တော်ကြောင်တစ်ကောင်မွေးထားတယ်"},
}

// TestLexicalFindsAsianLanguages asks about memories in Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese, among others in
// the same languages and among many in English.
func TestLexicalFindsAsianLanguages(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	owner := map[string]string{}
	for _, a := range asian {
		owner[a.question] = b.remember(t, scope, a.text, nil)
		b.remember(t, b.users[1], a.text, nil)
	}
	for _, size := range []string{"small account", "large account"} {
		for _, a := range asian {
			hits, err := b.Lexical(t.Context(), scope, retrieve.Request{Kind: retrieve.Memory, Text: a.question, Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(hits, func(h retrieve.Hit) bool { return b.ownerOf(t, h.ID) == owner[a.question] })
			if at != 0 {
				t.Errorf("%s: the answer to %q has rank %d among %d, want 0", size, a.question, at, len(hits))
			}
		}
		b.insertUnits(t, scope, owner[asian[0].question], 600, "null")
	}
}

// Composed and decomposed characters are the same in texts and queries.
func TestLexicalFindsDecomposedText(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	composed, decomposed := b.remember(t, scope, "Das Café ist grün", nil), b.remember(t, scope, "Das Cafe\u0301 ist rot", nil)
	b.remember(t, b.users[1], "Das Café ist grün", nil)
	for _, query := range []string{"Café", "cafe\u0301"} {
		hits, err := b.Lexical(t.Context(), scope, retrieve.Request{Kind: retrieve.Memory, Text: query, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, h := range hits {
			got[b.ownerOf(t, h.ID)] = true
		}
		if diff := cmp.Diff(map[string]bool{composed: true, decomposed: true}, got); diff != "" {
			t.Errorf("%+q (-want +got):\n%s", query, diff)
		}
	}
}
