// Package topology draws who can reach what: host and worktrees, agents on their networks, proxies, the
// uplink, and the hosts of vendors. It draws the declaration, so it needs no engine.
//
// SVG is made here, without any other program; DOT and Mermaid are text for those who have one. The same
// declaration gives the same bytes. Start with model.go.
package topology
