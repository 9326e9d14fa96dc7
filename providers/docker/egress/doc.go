// Package egress is the proxy of an invocation: the only way out of an agent's network. It speaks
// CONNECT and nothing else, decides by exact host and port before it looks anything up, dials exactly
// the addresses that it checked, and holds the TLS hello against the name that it let through.
//
// Decisions are pure and have packages of their own: head (the request), hostport (its target), acl
// (the declaration), addrclass (what an address is), hello (the TLS hello), reason (why, for logs,
// refusals and tests). What remains here is sockets. It knows nothing of Docker, prints only to the
// writers that it is given, and ends with the lease on its standard input. Start with config.go, then
// connect.go.
package egress
