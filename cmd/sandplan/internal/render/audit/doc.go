// Package audit words what drift found for programs: one JSON document, SARIF 2.1.0 for code scanning, and
// JUnit for test reports.
//
// It decides nothing, and the same findings give the same bytes: no clock, no host, no engine ID in what
// identifies a finding. An audit that could not be carried out is told apart from a clean one in each of the
// formats. Start with audit.go.
package audit
