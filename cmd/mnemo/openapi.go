package main

import (
	"os"

	"github.com/mnemo-dev/mnemo/apiserver"
)

type openapiCommand struct{}

// Run prints the OpenAPI document.
func (openapiCommand) Run() error {
	document, err := apiserver.OpenAPI()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(document)
	return err
}
