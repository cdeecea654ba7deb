// Command mnemo contains the API server, the operator, the schema migrations,
// and the administrator's and user's command-line tools. Every flag can be set
// by an environment variable; `mnemo <command> --help` lists both.
package main
