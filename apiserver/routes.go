package apiserver

import "net/http"

// routes is the route table of the API. /openapi.json, /docs and the pages of
// apiserver/dashboard are registered separately; /metrics has its own port
// (MetricsHandler).
func (s *Server) routes() {
	const get, post, patch, del = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete

	s.protocols()

	add(s, post, "/api/memory", docCreateMemory, s.createMemory)
	add(s, post, "/api/v2/memory", docCreateMemory.as("createMemoryV2"), s.createMemory)
	add(s, get, "/api/memory", docListMemories, s.listMemories)
	add(s, get, "/api/v2/memory", docListMemories.as("listMemoriesV2"), s.listMemories)
	add(s, post, "/api/v2/memory/update", docUpdateMemory, s.updateMemory)
	add(s, get, "/api/memories/{memoryId}", docGetMemory, s.getMemory)
	add(s, get, "/api/memories/{memoryId}/versions", docListVersions, s.listVersions)
	add(s, post, "/api/memories/{memoryId}/merge", docMergeMemories, s.mergeMemories)
	add(s, post, "/api/memories/{memoryId}/unmerge", docUnmergeMemories, s.unmergeMemories)
	add(s, del, "/api/memories/{memoryId}", docDeleteMemory, s.deleteMemory)
	add(s, post, "/api/memories/bulk-delete", docDeleteMemories, s.deleteMemories)

	add(s, get, "/api/buckets", docListBuckets, s.listBuckets)
	add(s, post, "/api/buckets", docCreateBucket, s.createBucket)
	add(s, patch, "/api/buckets/{bucketId}", docUpdateBucket, s.updateBucket)
	add(s, del, "/api/buckets/{bucketId}", docDeleteBucket, s.deleteBucket)

	add(s, get, "/api/chat-history/conversation", docGetConversation, s.getConversation)
	add(s, get, "/api/chat-history/count", docCountConversations, s.countConversations)
	add(s, get, "/api/chat-history/chats", docListConversations, s.listConversations)
	add(s, patch, "/api/chat-history/chats", docUpdateConversations, s.updateConversations)
	add(s, del, "/api/chat-history/chats", docDeleteConversations, s.deleteConversations)
	add(s, post, "/api/chat-history/search", docSearchConversations, s.searchConversations)
	add(s, post, "/api/chat-history/inject", docRecall.as("inject"), s.recall)
	add(s, post, "/api/chat-history/recall", docRecall, s.recall)
	add(s, post, "/api/chat-history/ingest/custom-online", docIngestConversation, s.ingestConversation)
	add(s, post, "/api/chat-history/import", docImportFile, s.importFile)
	add(s, get, "/api/chat-history/imports", docListImports, s.listImports)
	add(s, get, "/api/chat-history/imports/{importId}", docGetImport, s.getImport)
	add(s, get, "/api/chat-history/imports/{importId}/events", docFollowImport, s.followImport)

	add(s, post, "/api/search", docSearchAll, s.searchAll)

	add(s, get, "/api/export", docExport, s.export)
	add(s, del, "/api/account", docDeleteAccount, s.deleteAccount)
	add(s, get, "/api/audit", docListAudit, s.listAudit)

	add(s, get, "/api/tokens", docListTokens, s.listTokens)
	add(s, post, "/api/tokens", docCreateToken, s.createToken)
	add(s, del, "/api/tokens/{tokenId}", docRevokeToken, s.revokeToken)

	add(s, get, "/api/users", docListUsers, s.listUsers)
	add(s, get, "/api/users/{user}", docGetUser, s.getUser)
	add(s, del, "/api/users/{user}", docDeleteUser, s.deleteUser)

	addPublic(s, get, pathHealthz, docHealthz, s.health)
	addPublic(s, get, pathReadyz, docReadyz, s.health)
}

// protocols registers the routes that are not in /openapi.json: MCP describes itself, and clients
// discover the OAuth endpoints by RFC 9728 and 8414. The consent page is part of the dashboard.
func (s *Server) protocols() {
	s.app.Post(pathMCP, s.serveMCP(s.newMCP()))
	s.addMem0()
	if s.OAuth == nil {
		return
	}
	s.app.Get(pathResource, s.serveDocument(s.resourceMetadata()))
	s.app.Get(pathIssuer, s.serveDocument(s.issuerMetadata()))
	s.app.Post(pathRegister, s.oauthHandler(pathRegister, s.registerClient))
	s.app.Post(pathToken, s.oauthHandler(pathToken, s.issueTokens))
	s.app.Post(pathRevoke, s.oauthHandler(pathRevoke, s.revokeTokens))
}
