package apiserver

// isolationRequest is a request that may name things of a user:
//
//	$m  memory            $c  conversation       $b  bucket         $i  import
//	$g  connected app     $n  name of a bucket   $t  title          $e  external id of a conversation
//	$u  user of an application   $a  token that the user created
//	$x  agent that stored a memory   $f  event: messages from which facts are extracted
//	$k  idempotency key   $s  sign-in name       $q  a word that only the user's data contains
//
// The body is JSON, a form if it does not begin with a brace, or a message for MCP.
type isolationRequest struct {
	path, body string
	key        string // Idempotency-Key
	after      string // Last-Event-ID
}

// isolationCases are the requests of each route, MCP method, tool and resource
// template. TestIsolationOfEveryRoute fails for one that has none. A route that names
// nothing has one request, whose answer must not contain another user's data.
var isolationCases = map[string][]isolationRequest{
	"POST /api/memory":    {{body: `{"text":"a","bucketId":$b}`}, {body: `{"text":"a","bucketId":$b}`, key: "$k"}},
	"POST /api/v2/memory": {{body: `{"text":"a","bucketId":"$b"}`}},
	"GET /api/memory":     {{path: "?bucketId=$b"}, {path: "?query=$q"}, {path: "?bucketId=$b&skip=1&all=1"}, {path: "?all=1&count=1000&includeIds=1"}},
	"GET /api/v2/memory": {{path: "?bucketId=$b&query=$q"}, {path: "?query=$q&latest=1"}, {path: "?latest=1&skip=0"},
		{path: "?filter=%7B%22bucketId%22:%22$b%22%7D"}, {path: "?query=$q&minScore=0&filter=%7B%22metadata.k%22:%7B%22exists%22:false%7D%7D"}},
	"GET /api/memories/:memoryId":          {{path: "/$m"}},
	"DELETE /api/memories/:memoryId":       {{path: "/$m"}},
	"POST /api/memories/bulk-delete":       {{body: `{"memoryIds":["$m"]}`}},
	"GET /api/memories/:memoryId/versions": {{path: "/$m/versions"}},
	"POST /api/memories/:memoryId/merge":   {{path: "/$m/merge", body: `{"memoryIds":["0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e08"]}`}},
	"POST /api/memories/:memoryId/unmerge": {{path: "/$m/unmerge", body: `{}`}, {path: "/$m/unmerge", body: `{"memoryIds":["$m"]}`}},
	"POST /api/v2/memory/update": {
		{body: `{"memoryId":"$m","text":"b"}`},
		{body: `{"memoryId":"$m","agentId":"a","customMetadata":{"a":1}}`},
		{body: `{"memoryId":"$m","bucketName":"General"}`},
		{body: `{"memoryIds":["$m"],"bucketName":"General"}`},
		{body: `{"memoryIds":["$m"],"bucketId":$b}`},
		{body: `{"memoryIds":["$m"],"bucketName":"$n"}`},
	},
	"GET /api/buckets":              {{}},
	"POST /api/buckets":             {{body: `{"name":"General","description":"$n"}`}},
	"PATCH /api/buckets/:bucketId":  {{path: "/$b", body: `{"description":"b"}`}, {path: "/$b", body: `{"name":"General"}`}},
	"DELETE /api/buckets/:bucketId": {{path: "/$b"}},

	"GET /api/chat-history/conversation": {{path: "?conversationId=$c"}},
	"GET /api/chat-history/count":        {{}},
	"GET /api/chat-history/chats": {
		{path: "?importId=$i&status=all"}, {path: "?title=$t&status=all"}, {path: "?provider=$n"}, {path: "?status=all&pageSize=100&page=1"},
	},
	"PATCH /api/chat-history/chats":                  {{body: `{"ids":["$c"],"excluded":true,"pinned":true}`}},
	"DELETE /api/chat-history/chats":                 {{body: `{"ids":["$c"]}`}},
	"POST /api/chat-history/search":                  {{body: `{"query":"$q"}`}, {body: `{"query":"$q","provider":"$n"}`}},
	"POST /api/chat-history/inject":                  {{body: `{"query":"$q"}`}},
	"POST /api/chat-history/recall":                  {{body: `{"query":"$q"}`}, {body: `{"queries":[{"query":"$q"}],"conversationContext":"$t"}`}, {body: `{"query":"$q","include":["memories","chats"],"minScore":0}`}},
	"POST /api/chat-history/ingest/custom-online":    {{body: `{"conversation":{"id":"$e","title":"","messages":[]}}`}},
	"POST /api/chat-history/import":                  {{body: "--b\r\nContent-Disposition: form-data; name=\"platform\"\r\n\r\nother\r\n--b--\r\n"}},
	"GET /api/chat-history/imports":                  {{path: "?pageSize=100"}},
	"GET /api/chat-history/imports/:importId":        {{path: "/$i"}},
	"GET /api/chat-history/imports/:importId/events": {{path: "/$i/events"}, {path: "/$i/events", after: "1"}},

	"POST /api/search": {{body: `{"query":"$q"}`}, {body: `{"query":"$q","minScore":0,"include":["memories"]}`},
		{body: `{"query":"$q","minScore":0,"filter":{"NOT":[{"tags":"x"}]}}`}},

	"GET /mem0/v1/ping":                     {{}},
	"POST /mem0/v3/memories/add":            {{body: `{"messages":"a","metadata":{"user_id":"$q"}}`}}, // refused; isolatesWrites sends accepted ones
	"POST /mem0/v1/memories":                {{body: `{"messages":[],"agent_id":"$q"}`}},
	"POST /mem0/v3/memories/search":         {{body: `{"query":"$q"}`}, {body: `{"query":"$q","filters":{"NOT":[{"agent_id":"x"}]},"threshold":0}`}},
	"POST /mem0/v2/memories/search":         {{body: `{"query":"$q"}`}},
	"POST /mem0/v1/memories/search":         {{body: `{"query":"$q","output_format":"v1.1"}`}},
	"POST /mem0/v3/memories":                {{body: `{}`}, {body: `{"filters":{"agent_id":null}}`}},
	"POST /mem0/v2/memories":                {{body: `{}`}, {path: "?page=1", body: `{}`}},
	"GET /mem0/v1/memories":                 {{}, {path: "?page=1&page_size=2"}},
	"DELETE /mem0/v1/memories":              {{path: "?agent_id=$x"}},
	"GET /mem0/v1/memories/:memory":         {{path: "/$m"}},
	"PUT /mem0/v1/memories/:memory":         {{path: "/$m", body: `{"text":"b"}`}, {path: "/$m", body: `{"metadata":{"a":1}}`}},
	"DELETE /mem0/v1/memories/:memory":      {{path: "/$m"}, {path: "/$m?delete_linked=true"}},
	"GET /mem0/v1/memories/:memory/history": {{path: "/$m/history"}},
	"PUT /mem0/v1/batch":                    {{body: `{"memories":[{"memory_id":"$m","text":"b"}]}`}},
	"DELETE /mem0/v1/batch":                 {{body: `{"memories":[{"memory_id":"$m"}]}`}},
	"GET /mem0/v1/event/:event":             {{path: "/$f"}},
	"GET /mem0/v1/entities":                 {{}},
	"DELETE /mem0/v1/entities/:type/:name":  {{path: "/agent/$x"}},
	"DELETE /mem0/v2/entities/:type/:name":  {{path: "/agent/$x"}},

	"GET /api/audit":      {{}},
	"GET /api/export":     {{}},
	"DELETE /api/account": {{body: `{"confirm":"delete everything"}`}},

	"GET /api/tokens":             {{}},
	"POST /api/tokens":            {{body: `{"name":"$a","scopes":[]}`}},
	"DELETE /api/tokens/:tokenId": {{path: "/$a"}},

	"GET /api/users":          {{}, {path: "?after=$u"}},
	"GET /api/users/:user":    {{path: "/$u"}},
	"DELETE /api/users/:user": {{path: "/$u"}},

	"GET /healthz": {{}}, "GET /readyz": {{}}, "GET /openapi.json": {{}}, "GET /docs": {{}}, "GET /docs/:file": {{path: "/reference.js"}},
	"GET " + pathResource: {{}}, "GET " + pathIssuer: {{}},
	"POST " + pathRegister: {{body: `{"client_name":"$s","redirect_uris":["x"]}`}},
	"POST " + pathToken:    {{body: "grant_type=authorization_code&client_id=$g&code=mnc_x"}, {body: "grant_type=refresh_token&client_id=$g&refresh_token=mnr_x"}},
	"POST " + pathRevoke:   {{body: "client_id=$g&token=mnr_x"}},

	"GET /assets/:name": {{path: "/app.js"}, {path: "/$m"}},
	"GET /":             {{}}, "GET /sign-in": {{path: "?next=/chats/$c"}},
	"GET /t/:tenant": {{path: "/acme"}}, "GET /t/:namespace/:tenant": {{path: "/default/acme"}},
	"POST /sign-in":               {{body: "name=$s&password=wrong"}},
	"GET /sign-in/link":           {{}},
	"POST /sign-in/link":          {{body: "code=$s"}},
	"GET /sign-in/with/:provider": {{path: "/0"}},
	"GET /sign-in/callback":       {{path: "?state=$m&code=$c"}},
	"POST /sign-out":              {{}},

	"GET /memories":                 {{path: "?bucket=$b"}, {path: "?q=$q"}, {path: "?skip=0"}, {path: "?done=added&similar=$m,$m"}},
	"POST /memories":                {{body: "text=a&bucket=$b"}},
	"POST /memories/delete":         {{body: "id=$m"}},
	"POST /memories/undelete":       {{body: "deletion=$m"}},
	"POST /chats/undelete":          {{body: "deletion=$c"}},
	"POST /memories/move":           {{body: "id=$m&to=$b"}},
	"GET /memories/:id":             {{path: "/$m"}, {path: "/$m?skip=0&version=1"}},
	"POST /memories/:id":            {{path: "/$m", body: "text=b&version=1"}, {path: "/$m", body: "bucket=$b"}},
	"POST /memories/:id/merge":      {{path: "/$m/merge", body: "id=0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e08"}},
	"POST /memories/:id/unmerge":    {{path: "/$m/unmerge", body: "id=$m"}, {path: "/$m/unmerge", body: "x=y"}},
	"POST /buckets":                 {{body: "name=General&description=$n"}},
	"GET /buckets/:id":              {{path: "/$b"}},
	"POST /buckets/:id":             {{path: "/$b", body: "name=General"}},
	"POST /buckets/:id/delete":      {{path: "/$b/delete", body: "x=y"}},
	"GET /chats":                    {{path: "?import=$i"}, {path: "?title=$t"}, {path: "?q=$q"}, {path: "?page=1"}},
	"POST /chats/mark":              {{body: "id=$c&mark=exclude"}},
	"POST /chats/delete":            {{body: "id=$c"}},
	"POST /chats/import":            {{body: "--b\r\nContent-Disposition: form-data; name=\"platform\"\r\n\r\nother\r\n--b--\r\n"}},
	"GET /chats/imports":            {{}},
	"GET /chats/imports/:id":        {{path: "/$i"}},
	"GET /chats/:id":                {{path: "/$c"}, {path: "/$c?m=0&start=0&end=3&part=1"}},
	"GET /ask":                      {{path: "?q=$q"}},
	"GET /search":                   {{path: "?q=$q"}},
	"GET /connect":                  {{}},
	"GET /connect/apps":             {{}},
	"POST /connect/token":           {{body: "confirmed=yes"}},
	"POST /connect/password":        {{body: "confirmed=yes"}},
	"POST /connect/apps/disconnect": {{body: "id=$g"}},

	"POST /connect/tokens": {{body: "name=$a&scopes=none"}}, "POST /connect/tokens/revoke": {{body: "id=$a"}},

	"GET /authorize":  {{path: "?client_id=$g"}},
	"POST /authorize": {{body: "client_id=$g&for=$s"}},
	"GET /usage":      {{}},
	"GET /activity":   {{}, {path: "?before=5"}}, "GET /privacy": {{}},
	// Rejected, because what they store changes the work of the next request.
	"POST /sample": {{body: "back=/chats/$c&x=%zz"}}, "POST /sample/remove": {{body: "back=/chats/$c&x=%zz"}},
	"GET /admin": {{}, {path: "?after=$u"}}, "POST /admin/audit": {{body: "x=y"}},
	"POST /admin/members/remove": {{body: "email=$s"}}, "POST /admin/members/restore": {{body: "email=$s"}},
	// TestDashboard/Platform is about sessions of platform administrators.
	"GET /platform": {{path: "?q=$s"}}, "GET /platform/sign-in": {{}}, "GET /platform/sign-in/:provider": {{path: "/1"}}, "POST /platform/sign-out": {{body: "x=$s"}},
	"POST /account/export": {{body: "x=y"}},
	"POST /account/erase":  {{body: "confirm=delete+everything"}},

	"POST /mcp": {
		{body: `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`},
		{body: `{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"cursor":"0"}}`},
	},
	"tool store_memory":             {{body: `{"text":"a","bucketId":"$b"}`}},
	"tool search_memories":          {{body: `{"query":"$q","bucketId":"$b"}`}, {body: `{"query":"$q"}`}},
	"tool get_memories_and_buckets": {{body: `{"bucketId":"$b"}`}, {body: `{"count":100}`}},
	"tool list_buckets":             {{body: `{}`}},
	"tool create_bucket":            {{body: `{"name":"General","description":"$n"}`}},
	"tool update_or_move_memories": {
		{body: `{"memoryId":"$m","text":"b"}`}, {body: `{"memoryId":"$m","bucketName":"General"}`},
		{body: `{"memoryIds":["$m"],"bucketId":"$b"}`}, {body: `{"memoryIds":["$m"],"bucketName":"$n"}`},
	},
	"tool recall_chat_history":   {{body: `{"query":"$q"}`}},
	"tool search_chat_history":   {{body: `{"query":"$q"}`}},
	"tool get_full_conversation": {{body: `{"conversationId":"$c"}`}, {body: `{"conversationId":"$c","cursor":"1.0"}`}, {body: `{"conversationId":"$c","fromMessage":1}`}},

	"template mnemo://conversations/{id}":          {{body: "mnemo://conversations/$c"}},
	"template mnemo://conversations/{id}{?cursor}": {{body: "mnemo://conversations/$c?cursor=1"}},
}

// lastCases end the sessions, tokens or data of the user who sends them.
var lastCases = map[string]bool{
	"POST /connect/token": true, "POST /connect/password": true, "DELETE /api/account": true, "POST /account/erase": true, "POST /sign-out": true,
}

// sameForOwner are requests whose answer does not depend on whether what they name
// exists, even for its owner.
var sameForOwner = map[string]bool{
	"POST /api/buckets": true, "POST /api/tokens": true, "POST /connect/tokens": true, "POST /buckets": true, "tool create_bucket": true, "POST " + pathRegister: true, "POST " + pathToken: true, "POST " + pathRevoke: true,
	"GET /assets/:name": true, "GET /sign-in": true, "POST /sign-in": true, "GET /sign-in/link": true, "POST /sign-in/link": true, "POST /sample": true, "POST /sample/remove": true, "GET /sign-in/callback": true, "GET /authorize": true, "POST /authorize": true,
	"DELETE /mem0/v1/memories": true, "DELETE /mem0/v1/entities/:type/:name": true, "DELETE /mem0/v2/entities/:type/:name": true, "POST /mem0/v3/memories/add": true, "POST /mem0/v1/memories": true,
	"GET /platform": true, "POST /platform/sign-out": true,
	// These users are no administrators; TestDashboard/Administration is about them.
	"GET /admin": true, "POST /admin/members/remove": true, "POST /admin/members/restore": true,
	// Users have no access to them; TestUsersOfApplications is about applications.
	"GET /api/users": true, "GET /api/users/:user": true, "DELETE /api/users/:user": true,
	"POST /api/chat-history/ingest/custom-online": true, "POST /memories/delete": true, "POST /chats/delete": true, "POST /memories/undelete": true, "POST /chats/undelete": true, "POST /chats/mark": true,
}
