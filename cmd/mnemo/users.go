package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// usersCommand groups the commands for users of identity providers. Listed users are
// managed in their Tenant.
type usersCommand struct {
	List    listUsersCommand   `cmd:"" help:"List the users of a tenant who signed in with an identity provider, and the removed addresses."`
	Remove  removeUserCommand  `cmd:"" help:"End the access of a user immediately and reject further sign-ins. The Tenant's deletion policy determines whether the data is kept."`
	Restore restoreUserCommand `cmd:"" help:"Permit a user who was removed with this command line to sign in again."`
}

type listUsersCommand struct{ tenantFlags }

// Run prints a table of users.
func (c *listUsersCommand) Run(ctx context.Context) error {
	return c.run(ctx, func(db *postgres.DB, id tenant.ID) error {
		users, removed, err := db.ListExternalUsers(ctx, id)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
		fmt.Fprintln(w, "EMAIL\tSTATE\tSESSIONS\tTOKENS\tCREATED\tNAME\tISSUER")
		for _, u := range users {
			state := map[bool]string{true: "active", false: "inactive"}[u.Active]
			if u.Purging {
				state = "purging"
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", u.Email, state, u.Sessions, u.Tokens, u.CreatedAt.UTC().Format(time.RFC3339), u.Name, u.Issuer)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		for _, r := range removed {
			by := "spec.oidc.removedUsers"
			if r.Administrator {
				by = "mnemo users remove"
			}
			fmt.Printf("%s was removed by %s at %s\n", r.Email, by, r.RemovedAt.UTC().Format(time.RFC3339))
		}
		return nil
	})
}

type removeUserCommand struct {
	tenantFlags
	Email string `arg:"" help:"Email address of the user."`
}

// Validate rejects an argument that is no address: it would be recorded, and nobody's
// access would end.
func (c *removeUserCommand) Validate() error {
	if !tenant.IsEmail(c.Email) {
		return errors.New("<email> must be an email address such as ann@acme.test")
	}
	return nil
}

// Run removes the user.
func (c *removeUserCommand) Run(ctx context.Context) error {
	return c.run(ctx, func(db *postgres.DB, id tenant.ID) error {
		ended, err := db.RemoveExternalUser(ctx, id, c.Email)
		if err != nil {
			return err
		}
		_, err = fmt.Printf("removed %s: ended the access of %d users; further sign-ins are rejected\n", c.Email, ended)
		return err
	})
}

type restoreUserCommand struct {
	tenantFlags
	Email string `arg:"" help:"Email address of the user."`
}

// Run restores the user.
func (c *restoreUserCommand) Run(ctx context.Context) error {
	return c.run(ctx, func(db *postgres.DB, id tenant.ID) error {
		if err := db.RestoreExternalUser(ctx, id, c.Email); err != nil {
			return err
		}
		_, err := fmt.Printf("restored %s\n", c.Email)
		return err
	})
}
