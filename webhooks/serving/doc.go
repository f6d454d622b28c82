// Package serving is what every webhook of Stencil shares: the HTTPS server, and around each admission
// handler a deadline, a limit on the body, a recovery from panics and metrics.
//
// An AdmissionReview is decoded here, once and into its own type. controller-runtime's handler passes it through a scheme, which
// reads it three times.
//
// [Server] is a server of its own and not the one of controller-runtime, because a webhook with
// failurePolicy Fail must not lose a request when its replica goes away:
//
//   - controller-runtime's server derives the context of every request from its own, so the moment it
//     is told to stop, the requests in flight lose their context, and with it the permission check that
//     they may be waiting for. Here a request keeps its context until its deadline.
//   - The API server keeps idle connections to a webhook, and a kept connection goes on reaching a replica that no
//     Service sends new connections to. From [Server.Drain] on every response asks for its
//     connection to be closed, so that the connections move to other replicas, one by one and each
//     after a complete answer.
//   - The idle timeout is longer than the API server's, so that it is always the client who closes an idle
//     connection: a server that closes one may meet a request that is just being sent on it.
//
// The way out therefore has three steps. On SIGTERM the process calls [Server.Drain]: readiness turns false and
// connections are wound up, while requests are served as before. After --shutdown-delay, when every
// API server and every kube-proxy has learnt that the replica is gone, [Linger] ends the context
// of the manager: Start closes the listener. What is still in flight then has
// --shutdown-timeout to finish.
//
// A webhook is registered with [Server.Register], before Start. Its handler finds in its context the
// deadline that the API server set, minus a margin in which the answer travels back.
package serving
