package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
)

type tokensCommand struct {
	List   listTokensCommand  `cmd:"" help:"List the tokens that you created."`
	Create createTokenCommand `cmd:"" help:"Create a token and print it. It cannot be printed again."`
	Revoke revokeTokenCommand `cmd:"" help:"Revoke tokens. They are invalid at once."`
}

type listTokensCommand struct{ remoteFlags }

// Run prints one token per line, newest first.
func (c *listTokensCommand) Run(ctx context.Context, t terminal) error {
	server, err := c.open()
	if err != nil {
		return err
	}
	list, err := server.ListTokens(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return t.printJSON(list.Body)
	}
	for _, token := range list.Body.Tokens {
		_, err := fmt.Fprintf(t.out, "%s  (%s, %s, %s, %s)\n", oneLine(token.Name), strings.Join(token.Scopes, " "), used(token.LastUsedAt), expiry(token.ExpiresAt), token.ID)
		if err != nil {
			return err
		}
	}
	return nil
}

func used(at *time.Time) string {
	if at == nil {
		return "never used"
	}
	return "last used " + at.Local().Format("2006-01-02 15:04")
}

func expiry(at *time.Time) string {
	if at == nil {
		return "does not expire"
	}
	return "expires " + at.Local().Format("2006-01-02 15:04")
}

type createTokenCommand struct {
	remoteFlags
	Name    string        `arg:"" help:"Name that tells you where the token is used, such as Laptop."`
	Scopes  []string      `default:"read,write" enum:"read,write,admin" help:"Scopes of the token: read, write and admin (manage tokens)."`
	Expires time.Duration `help:"Time after which the token expires, such as 720h. Without it, the token does not expire."`
}

// Run prints the token alone, for use in scripts.
func (c *createTokenCommand) Run(ctx context.Context, t terminal) error {
	server, err := c.open()
	if err != nil {
		return err
	}
	request := client.CreateTokenRequest{Name: c.Name}
	for _, s := range c.Scopes {
		request.Scopes = append(request.Scopes, client.CreateTokenRequestScopes(s))
	}
	if c.Expires > 0 {
		request.ExpiresAt = new(time.Now().Add(c.Expires))
	}
	created, err := server.CreateToken(ctx, request)
	if err != nil {
		return err
	}
	if c.JSON {
		return t.printJSON(created.Body)
	}
	_, err = fmt.Fprintln(t.out, created.Body.Token)
	return err
}

type revokeTokenCommand struct {
	remoteFlags
	IDs []string `arg:"" name:"id" help:"IDs of tokens, as in the list."`
}

// Run revokes each token, and stops at the first error.
func (c *revokeTokenCommand) Run(ctx context.Context, t terminal) error {
	server, err := c.open()
	if err != nil {
		return err
	}
	for _, id := range c.IDs {
		if _, err := server.RevokeToken(ctx, id); err != nil {
			return fmt.Errorf("revoke %s: %w", id, err)
		}
	}
	_, err = fmt.Fprintf(t.out, "revoked %d\n", len(c.IDs))
	return err
}
