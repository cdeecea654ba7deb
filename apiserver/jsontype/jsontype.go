// Package jsontype names the JSON types of Go types in error messages.
package jsontype

import "reflect"

// Name returns the JSON type that is decoded into t, with its article, such as
// "a string".
func Name(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Int32:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "an array"
	default:
		return "an object"
	}
}
