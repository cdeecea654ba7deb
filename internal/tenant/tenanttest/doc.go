// Package tenanttest holds what tests of tenants share: Exercise, the suite
// every tenant.Store and tenant.TokenStore passes, and Fake, the one in memory
// that passes it and lets a test make calls fail.
//
// What the suite settles beyond the comments in package tenant:
//
//   - After Apply with a Claim the tenant is known by the ID that Apply
//     returns, which may be the claimed one; only Retire takes the claiming
//     resource's uid in every case.
//   - A user whose newest token is revoked has a Token with an empty
//     Fingerprint and the Generation it had, so that the next one is above it.
//   - A user who is no longer listed and is listed again is the same UserID
//     when the policy is Retain, another one when it is Delete.
//   - RevokeOlder never lengthens a token's life: of two overlaps the one that
//     ends first counts.
//   - Retire with Delete returns zero once the rows are gone and by then has
//     forgotten the placement and freed the name. Whoever retires drops the
//     partition after that. No placement is ever given out twice.
package tenanttest
