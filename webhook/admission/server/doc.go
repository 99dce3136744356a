// Package server answers AdmissionReviews over HTTPS: it bounds what it reads and how much of it at a time, passes each review to the
// handler of its path, and drains when it is to stop. It knows no pods.
//
// # Tried and left
//
//   - webhook.DefaultServer of controller-runtime: it closes idle connections when the API server does, bounds neither headers nor
//     writing, and cancels the contexts of reviews in flight as soon as it is to stop (server.go).
//   - The library's response as the answer: an admission.Response with a status code is a denial to the API server, whatever the
//     code. A fault has to be an HTTP status, so that the failurePolicy decides (endpoint.go).
//   - A panic that the library recovers: it answers 500 as a denial. Here it is a fault.
//   - HTTP/2: "Connection: close" has no effect there, by which callers leave a server that drains.
//   - ReadTimeout of http.Server: it counts from the opening of a connection, of which the API server opens some early.
//   - One queue for all reviews: reviews that wait for a quota would delay reviews that are only computed. They have two (limits.go).
package server
