// Package reason names every reason that a proxy decides for. Log lines, refusals and tests share the
// names, so that none of them can mean something of its own.
package reason

import (
	"maps"
	"slices"
)

// Reason is why something was decided. None means that nothing speaks against it.
type Reason string

// None is no reason: nothing was found.
const None Reason = ""

// Allowed is the reason of a decision to let through.
const Allowed Reason = "allowed"

// What is wrong with a request.
const (
	NotAgent         Reason = "not_the_agent"      // from an address that is not the agent's
	NotConnect       Reason = "method_not_allowed" // another method than CONNECT
	NotHTTP          Reason = "not_http"           // bytes that no HTTP request has
	BadRequestLine   Reason = "bad_request_line"
	BadVersion       Reason = "bad_version" // neither HTTP/1.1 nor HTTP/1.0
	BadHeader        Reason = "bad_header"  // a line that is no field, a bare line feed, a folded line
	HeadTooLarge     Reason = "head_too_large"
	HeadTooSlow      Reason = "head_too_slow"
	HeadIncomplete   Reason = "head_incomplete" // the client left before its end
	HasBody          Reason = "has_body"        // a length or a transfer coding
	EarlyData        Reason = "early_data"      // bytes behind the request, before it was answered
	HostMissing      Reason = "host_missing"
	HostTwice        Reason = "host_twice"
	HostDiffers      Reason = "host_differs" // Host names something else than the target
	BadTarget        Reason = "bad_target"   // not HOST:PORT
	BadPort          Reason = "bad_port"     // missing, 0, above 65535, or not plainly written
	NotCanonical     Reason = "name_not_canonical"
	AddressLiteral   Reason = "address_literal" // an address instead of a name, in whatever spelling
	HostNotDeclared  Reason = "host_not_declared"
	PortNotDeclared  Reason = "port_not_declared"
	TooManyTunnels   Reason = "too_many_tunnels"
	TooManyPerSecond Reason = "too_many_tunnels_per_second"
	UploadLimit      Reason = "upload_limit"
	DownloadLimit    Reason = "download_limit"
	LogLimit         Reason = "log_limit"
)

// What is wrong with an address.
const (
	Unspecified   Reason = "address_unspecified"
	Loopback      Reason = "address_loopback"
	Private       Reason = "address_private"
	LinkLocal     Reason = "address_link_local"
	Metadata      Reason = "address_metadata" // of a cloud's metadata service
	CGNAT         Reason = "address_cgnat"
	Multicast     Reason = "address_multicast"
	Broadcast     Reason = "address_broadcast"
	Documentation Reason = "address_documentation"
	Benchmarking  Reason = "address_benchmarking"
	Reserved      Reason = "address_reserved" // any other special purpose, and what nobody has assigned
	NAT64         Reason = "address_nat64"
	SixToFour     Reason = "address_6to4"
	Teredo        Reason = "address_teredo"
	Mapped        Reason = "address_mapped"      // IPv4 within IPv6
	OwnNetwork    Reason = "address_own_network" // the proxy's own, or a network that it is on
)

// What is wrong on the way out.
const (
	LookupFailed Reason = "lookup_failed"
	NoAddress    Reason = "no_address" // the name does not exist, or has none
	DialFailed   Reason = "dial_failed"
)

// What is wrong with the hello of a tunnel.
const (
	NotTLS         Reason = "not_tls"
	HelloMalformed Reason = "hello_malformed"
	HelloTooLarge  Reason = "hello_too_large"
	HelloTooSlow   Reason = "hello_too_slow"
	HelloMissing   Reason = "hello_missing" // the client left before its end
	SNIMissing     Reason = "sni_missing"
	SNIDiffers     Reason = "sni_differs"
	ECH            Reason = "encrypted_client_hello"
	HelloEarlyData Reason = "hello_early_data"
	// Behind the hello.
	DataBeforeAnswer Reason = "data_before_answer"
	AnswerNotTLS     Reason = "answer_not_tls"
)

// How a tunnel ended.
const (
	Closed   Reason = "closed"   // both sides had said all
	Reset    Reason = "reset"    // one side reset it, and so was the other
	Failed   Reason = "failed"   // any other error on one side
	Stopping Reason = "stopping" // the proxy ends
	Unused   Reason = "unused"   // closed before its first byte: a probe
)

// text is what people and agents read.
var text = map[Reason]string{
	NotAgent:         "only the agent of this invocation may use this proxy",
	NotConnect:       "this proxy knows CONNECT and no other method",
	NotHTTP:          "this is no HTTP request",
	BadRequestLine:   "the request line is not METHOD TARGET VERSION",
	BadVersion:       "the version is neither HTTP/1.1 nor HTTP/1.0",
	BadHeader:        "a header line is malformed",
	HeadTooLarge:     "the request is too large",
	HeadTooSlow:      "the request took too long",
	HeadIncomplete:   "the request has no end",
	HasBody:          "a CONNECT request has no body",
	EarlyData:        "there was data behind the request before it was answered",
	HostMissing:      "an HTTP/1.1 request needs the field Host",
	HostTwice:        "the field Host stands there twice",
	HostDiffers:      "the field Host names something else than the target",
	BadTarget:        "the target is not HOST:PORT",
	BadPort:          "the port is not a plain number from 1 to 65535",
	NotCanonical:     "the name is not written in lower case and without a final dot",
	AddressLiteral:   "an address is not a name, and only declared names are reachable",
	HostNotDeclared:  "the host is not declared",
	PortNotDeclared:  "the host is declared, this port of it is not",
	TooManyTunnels:   "too many tunnels at once",
	TooManyPerSecond: "too many new tunnels per second",
	UploadLimit:      "the bytes that this run may upload are used up",
	DownloadLimit:    "the bytes that this run may download are used up",
	LogLimit:         "the log is full, and nothing happens unlogged",

	Unspecified:   "the name has an address that names no machine",
	Loopback:      "the name has a loopback address",
	Private:       "the name has a private address",
	LinkLocal:     "the name has a link-local address",
	Metadata:      "the name has the address of a metadata service",
	CGNAT:         "the name has an address of a carrier's inner network",
	Multicast:     "the name has a multicast address",
	Broadcast:     "the name has a broadcast address",
	Documentation: "the name has an address that is for documentation",
	Benchmarking:  "the name has an address that is for benchmarks",
	Reserved:      "the name has a reserved address",
	NAT64:         "the name has an address that is translated to IPv4",
	SixToFour:     "the name has a 6to4 address",
	Teredo:        "the name has a Teredo address",
	Mapped:        "the name has an IPv4 address wrapped in IPv6",
	OwnNetwork:    "the name has an address on the proxy's own networks",

	LookupFailed: "the name could not be looked up",
	NoAddress:    "the name does not exist, or has no IPv4 address",
	DialFailed:   "the host could not be reached",

	NotTLS:         "the tunnel does not begin with TLS",
	HelloMalformed: "the TLS hello is malformed",
	HelloTooLarge:  "the TLS hello is too large",
	HelloTooSlow:   "the TLS hello took too long",
	HelloMissing:   "the tunnel ended before its TLS hello",
	SNIMissing:     "the TLS hello names no host",
	SNIDiffers:     "the TLS hello names another host than the tunnel",
	ECH:            "the TLS hello hides the host that it is for",
	HelloEarlyData: "the TLS hello announces data before the handshake",

	DataBeforeAnswer: "the client went on before the server had answered its TLS hello",
	AnswerNotTLS:     "the server does not answer the TLS hello with TLS",

	Allowed:  "the host and its port are declared",
	Closed:   "both sides had said all",
	Reset:    "one side reset the connection, and so was the other",
	Failed:   "one side failed, and the other was reset",
	Stopping: "the proxy ended with its run",
	Unused:   "the client left before its first byte",
}

// Text is the reason as a clause, for people.
func (r Reason) Text() string {
	if t, ok := text[r]; ok {
		return t
	}
	return string(r)
}

// All are all reasons, sorted.
func All() []Reason { return slices.Sorted(maps.Keys(text)) }
