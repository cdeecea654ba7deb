// Package oauth is the domain of the access that users grant to apps: OAuth 2.1
// with dynamically registered public clients, authorization codes with PKCE,
// short-lived access tokens and rotated refresh tokens
// (docs/adr/0008-own-oauth-server.md). Only hashes of the issued secrets are
// stored.
package oauth
