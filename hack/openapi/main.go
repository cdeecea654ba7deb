// Command openapi prints the HTTP contract as OpenAPI 3.1, for hack/generate.sh.
// `mnemo openapi` prints the same, but its build needs the client that is
// generated from the contract.
package main

import (
	"fmt"
	"os"

	"github.com/mnemo-dev/mnemo/apiserver"
)

func main() {
	document, err := apiserver.OpenAPI()
	if err == nil {
		_, err = os.Stdout.Write(document)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hack/openapi:", err)
		os.Exit(1)
	}
}
