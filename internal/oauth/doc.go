// Package oauth is the domain of the access that users give to programs: OAuth
// 2.1 with dynamically registered public clients, authorization codes with PKCE,
// short-lived access tokens and rotated refresh tokens
// (docs/adr/0008-own-oauth-server.md). Only hashes of what it issues are kept.
package oauth
