// Package dockertest lets tests use a real engine, put faults between a client and it, and, for what no
// real engine can be made to do at a chosen moment, use an engine in memory.
//
// What an engine does is asked of an engine: start with Socket and Proxy, which forwards every call and
// changes only those that a test names. Fake is for races and faults by the thousand. It is held to
// recordings of three releases (testdata): "go test -run TestRecord -record" makes one of the engine at
// hand, "make record-engines" of all three.
package dockertest
