package tenant

import "context"

// ActorKind is the kind of an actor.
type ActorKind string

// The kinds of actors.
const (
	ActorUser          ActorKind = "user"
	ActorApplication   ActorKind = "application" // with its key, for one of its users
	ActorOperator      ActorKind = "operator"
	ActorAdministrator ActorKind = "administrator" // on the command line, or of the platform
	ActorSystem        ActorKind = "system"        // background work without a request
)

// The ways in which a user acts, in Actor.Via.
const (
	ViaToken    = "token"
	ViaKey      = "key" // of an application
	ViaSession  = "session"
	ViaApp      = "app"      // a connected app with an OAuth secret
	ViaPassword = "password" // of a sign-in
	ViaProvider = "provider" // an identity provider, of a sign-in
	ViaLink     = "link"     // a one-time link, of a sign-in
)

// Actor is who makes a change, for the audit log.
type Actor struct {
	Kind ActorKind
	// Via is the credential of a user, the command of an administrator, or the kind of
	// a job.
	Via string
	// Fingerprint identifies the token, session or secret of a user; see
	// Hash.Fingerprint.
	Fingerprint string
	// App is the client id of a connected app, or the name of an application.
	App string
}

// actorKey is the context key of the actor.
type actorKey struct{}

// WithActor returns a context whose changes are those of the actor. Authentication, the
// operator, the job workers and each command call it.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns the actor of a context; the system if it has none.
func ActorOf(ctx context.Context) Actor {
	if a, ok := ctx.Value(actorKey{}).(Actor); ok {
		return a
	}
	return Actor{Kind: ActorSystem}
}

// userActor returns a user who acts with a credential.
func userActor(via string, h Hash) Actor {
	return Actor{Kind: ActorUser, Via: via, Fingerprint: h.Fingerprint()}
}

// TokenActor returns the user who acts with an API token.
func TokenActor(h Hash) Actor { return userActor(ViaToken, h) }

// KeyActor returns the application that acts with a key.
func KeyActor(h Hash, application string) Actor {
	return Actor{Kind: ActorApplication, Via: ViaKey, Fingerprint: h.Fingerprint(), App: application}
}

// SessionActor returns the user who acts with a session of the dashboard.
func SessionActor(h Hash) Actor { return userActor(ViaSession, h) }

// AppActor returns the user who acts through a connected app.
func AppActor(h Hash, client string) Actor {
	a := userActor(ViaApp, h)
	a.App = client
	return a
}
