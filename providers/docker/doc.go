// Package docker is all that sandplan knows of Docker: how a configuration becomes objects of an engine,
// how an engine shows them, and how they are made and removed.
//
// An object is wanted, or seen, as a tree of JSON in the form of the engine's inspect output. The rows of
// its kind (row.go) turn either tree into planner.Fields, which planning, gate and rendering compare.
// Nobody else in the program reads a property of an object, and no property is left without a row: what
// no row covers is a mismatch.
//
// The package decides nothing. It does not say what follows from a difference, keeps no state between
// calls, prints nothing, and never finds or removes an object by its name. It imports no package of the
// program but planner, planner/policy and hclspec.
//
// Start with network.go, which is one kind from end to end; then row.go and kind.go, what all kinds
// share; snapshot.go, how an engine is looked at; compile.go, how a configuration becomes resources;
// lock.go, how two of us keep out of each other's way.
package docker
