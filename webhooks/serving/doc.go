// Package serving contains what all webhooks of Stencil share: the HTTPS server, and for each admission handler a
// deadline, a limit on the body, a recovery from panics and metrics.
//
// An AdmissionReview is decoded here, once and into its own type. controller-runtime's handler decodes it through a
// scheme, which reads it three times.
//
// [Server] replaces the server of controller-runtime, because a webhook with failurePolicy Fail must not lose a
// request when its replica stops:
//
//   - controller-runtime's server derives the context of every request from its own. When it stops, the requests in
//     flight lose their context, and with it the permission check that they may be waiting for. Here a request
//     retains its context until its deadline.
//   - The API server reuses idle connections to a webhook, and a reused connection still reaches a replica that no
//     Service sends new connections to. After [Server.Drain] every response requests that its connection be closed,
//     so that the connections change to other replicas, one by one and each after a complete response.
//   - The idle timeout is longer than the API server's, so that always the client closes an idle connection. If the
//     server closed it, a request might be in transit on it.
//
// Shutdown has three steps. On SIGTERM the process calls [Server.Drain]: the readiness check fails and connections
// are closed one by one, while requests are still served. After --shutdown-delay, when every API server and every
// kube-proxy has observed that the replica is not ready, [Linger] ends the context of the manager, and Start closes
// the listener. Requests in flight then have --shutdown-timeout to finish.
//
// A webhook is registered with [Server.Register], before Start. The context of its handler has the deadline that the
// API server set, minus a margin for returning the response.
package serving
