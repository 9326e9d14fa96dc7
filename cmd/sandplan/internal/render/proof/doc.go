// Package proof words a verification for programs: one JSON document, and JUnit for test reports. It decides
// nothing, and the same report gives the same bytes.
package proof
