// Command mnemo is the whole product in one binary: the API server, the
// operator, the schema's migrations, and what a host needs beside them. Every
// flag can be given in the environment; `mnemo <command> --help` lists both.
package main
