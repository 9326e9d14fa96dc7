// Package applier carries out a plan: it walks the plan's graph, so many operations at a time, and holds
// the scope's lock while it does. What is to be done and in which order is decided in planner; here it is
// done, once, and told as events.
//
// It knows no engine (Provider does), prints nothing, and reads no clock but the one it is given. Start
// with apply.go, then walk.go. Starting agents is the business of applier/launch.
package applier
