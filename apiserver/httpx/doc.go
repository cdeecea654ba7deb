// Package httpx is the part of the HTTP server that knows no noun of Mnemo: connections and their
// limits, the head and the body of a request, JSON, query parameters, CORS, request rates, the turns
// of concurrent requests, and errors. Package apiserver puts it together and adds the resources.
//
// The order of a request is:
//
//   - Conns accepts its connection, and Prepare stops the server at the end of the head.
//   - CheckHead, HasEncodedSlash and CORS.Allow see the head, before a route is chosen.
//   - Limiter and Turns decide whether, and when, the request is served.
//   - JSONBody reads its body within the limits of the route, and DecodeJSON decodes it. NewUploadReader reads a file.
//   - ErrorOf maps an error to its response; HoldBody and NewPacedBody watch how the response is sent.
package httpx
