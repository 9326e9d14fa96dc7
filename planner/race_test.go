//go:build race

package planner_test

// raceFactor is how much slower everything may be under the race detector.
const raceFactor = 20
