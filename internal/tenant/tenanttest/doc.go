// Package tenanttest contains the specification of tenant.Store and tenant.TokenStore
// as the tests of Exercise.
//
// The suite specifies these details in addition to the comments in package tenant:
//
//   - After an adoption, the tenant is identified by the ID that Apply
//     returns, which may be the adopted one. Only Retire always expects the uid of
//     the adopting resource.
//   - A user whose newest token is revoked has a Token with an empty
//     Fingerprint and that token's Generation, so that the next one is greater.
//   - A user who is removed and listed again keeps the UserID if the policy is
//     Retain, and gets another one if it is Delete.
//   - RevokeOlder never extends a token: the earlier of two expiries applies.
//   - Retire with Delete returns zero once all rows are deleted. The placement is
//     then deleted and the name is free. The caller drops the partition
//     afterwards. No location is assigned twice.
package tenanttest
