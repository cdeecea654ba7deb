// Package reference serves the interactive API reference: Swagger UI with the
// contract of the server it runs on.
package reference
