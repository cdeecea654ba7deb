// Package client is a client of the Mnemo API. Its methods and types are
// generated from api/openapi.json; this package adds typed errors.
//
//	c, err := client.New("https://mnemo.example.com", token)
//	stored, err := c.CreateMemory(ctx, nil, client.CreateMemoryRequest{Text: "2025-05-09 Prefers the window seat"})
//	found, err := c.ListMemories(ctx, &client.ListMemoriesParams{Query: new("where do I like to sit?")})
package client
