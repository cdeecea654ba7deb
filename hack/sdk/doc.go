// Package sdk generates and builds the packages in the directory sdk.
package sdk
