package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// maxLinkLifetime is the maximum lifetime of a sign-in link.
const maxLinkLifetime = time.Hour

type signInLinkCommand struct {
	tenantFlags
	URL      *url.URL      `name:"url" env:"MNEMO_URL" required:"" help:"URL at which users reach the API server, such as https://mnemo.example.com."`
	User     string        `required:"" help:"User of the tenant: the name or email address."`
	Lifetime time.Duration `default:"10m" help:"Time until the link expires, at most 1h."`
}

// Validate checks the lifetime.
func (c *signInLinkCommand) Validate() error {
	if c.Lifetime < time.Second || c.Lifetime > maxLinkLifetime {
		return errors.New("--lifetime must be between 1s and 1h")
	}
	return nil
}

// Run prints a link that signs the user in once. Only its hash is stored.
func (c *signInLinkCommand) Run(ctx context.Context) error {
	return c.run(ctx, func(db *postgres.DB, id tenant.ID) error {
		link, err := createSignInLink(ctx, db, id, c.User, c.URL, c.Lifetime)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "the link works once and expires in %s\n", c.Lifetime)
		_, err = fmt.Println(link)
		return err
	})
}

func createSignInLink(
	ctx context.Context, db *postgres.DB, id tenant.ID, user string, server *url.URL, lifetime time.Duration,
) (string, error) {
	scope, err := db.FindUser(ctx, id, user)
	if err != nil {
		return "", err
	}
	secret, err := tenant.NewSession(db.DatabaseCell(), rand.Reader)
	if err != nil {
		return "", err
	}
	link := tenant.SignInLink{Scope: scope, Secret: tenant.HashSecret(secret), Lifetime: lifetime}
	if err := db.CreateSignInLink(ctx, link); err != nil {
		return "", err
	}
	return server.JoinPath(dashboard.PathLink).String() + "#" + secret, nil
}
