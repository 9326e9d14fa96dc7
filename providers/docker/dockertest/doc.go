// Package dockertest lets tests use the real engine, and puts faults between a client and it.
//
// There is no imitation of an engine here that a test could mistake for the real one: what an engine
// does is asked of an engine. Proxy forwards every call and changes only those that a test names, so
// that what cannot be provoked (a lost connection, an answer that comes late, a field that no engine
// at hand shows) can be. Start with Socket and Proxy.
package dockertest
