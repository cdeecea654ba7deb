// Package milvus runs Milvus in standalone mode.
package milvus
