// Command openapi prints the HTTP contract as OpenAPI 3.1, for hack/generate.sh.
// `mnemo openapi` does too, but cannot be built without the client that is
// generated from it.
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
