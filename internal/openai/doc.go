// Package openai sends requests to OpenAI-compatible endpoints: OpenAI, Azure,
// vLLM, Ollama and others. It knows the transport only (authentication, retries,
// limits, errors); its users define the messages of the routes that they call.
package openai
