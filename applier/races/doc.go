// Package races holds tests and nothing else: the whole product, from the gate to settlement, and apply
// and destroy, on an engine in memory (providers/docker/dockertest.Fake), while somebody changes the world
// between any two calls, and while calls fail in every way that a call can fail.
//
// Start with world_test.go; mutations_test.go is the table of what can be changed.
package races
