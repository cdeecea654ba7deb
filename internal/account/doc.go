// Package account is about all a user has, as one: taken out as it was at one
// moment, put back into an empty account, and removed.
package account
