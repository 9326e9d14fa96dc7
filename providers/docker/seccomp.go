package docker

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The seccomp profiles are our own. The engine's default one depends on the engine's version and on
// daemon.json, shows as null in inspect, and allows more than an agent needs (AF_VSOCK, which no
// network namespace confines, and io_uring on 20.10). Ours are allow-lists, sent inline with each
// container; inspect echoes them byte for byte, and their row is the hash of those bytes.
//
// Engines ignore keys that they do not know and parse a profile only when a container starts, so a
// profile is never taken at its word: the shim tries what it denies (shim.DeniedCalls).

// AgentSeccomp is the profile of agents, in canonical JSON.
func AgentSeccomp() string { return agentProfile(true).encode() }

// RunnerSeccomp is the profile of runners. They have no network, and a unix socket in the worktree would be
// one: they may have pairs of them, as every library that starts processes needs, but open none.
func RunnerSeccomp() string { return agentProfile(false).encode() }

// ProxySeccomp is the profile of proxies and of whatever else runs only sandplan's own binary.
func ProxySeccomp() string { return proxyProfile().encode() }

// seccompOption is how a container asks for a profile, and its prefix in inspect.
const seccompOption = "seccomp="

// seccompDigest stands for a profile in rows. It is over the bytes as they are: two readers may take
// one JSON text differently (keys twice, keys in another case), equal bytes they take equally.
func seccompDigest(profile string) string {
	sum := sha256.Sum256([]byte(profile))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// securityOpt is one element of HostConfig.SecurityOpt as rows hold it: a profile as its digest, all
// else as it is.
func securityOpt(opt string) string {
	if profile, ok := strings.CutPrefix(opt, seccompOption); ok && strings.HasPrefix(strings.TrimSpace(profile), "{") {
		return seccompOption + seccompDigest(profile)
	}
	return opt
}

// seccompProfile is a profile in the form that engines read.
type seccompProfile struct {
	DefaultAction string        `json:"defaultAction"`
	ArchMap       []seccompArch `json:"archMap"`
	Syscalls      []seccompRule `json:"syscalls"`
}

// seccompArch admits one architecture. Without subArchitectures a call by way of another one (32-bit
// calls of a 64-bit process, x32) kills the caller.
type seccompArch struct {
	Architecture     string   `json:"architecture"`
	SubArchitectures []string `json:"subArchitectures"`
}

type seccompRule struct {
	Names    []string         `json:"names"`
	Action   string           `json:"action"`
	ErrnoRet *uint            `json:"errnoRet,omitempty"`
	Args     []seccompArg     `json:"args,omitempty"`
	Includes *seccompIncludes `json:"includes,omitempty"`
}

// seccompArg is a condition on one argument; all conditions of a rule must hold.
type seccompArg struct {
	Index    uint   `json:"index"`
	Value    uint64 `json:"value"`
	ValueTwo uint64 `json:"valueTwo"`
	Op       string `json:"op"`
}

type seccompIncludes struct {
	Arches []string `json:"arches"`
}

const (
	seccompAllow = "SCMP_ACT_ALLOW"
	seccompErrno = "SCMP_ACT_ERRNO" // EPERM, unless errnoRet says otherwise
)

// equal asks that an argument has a value; noBits that it has none of some bits; masked that some
// bits of it have a value.
func equal(index uint, value uint64) seccompArg {
	return seccompArg{Index: index, Value: value, Op: "SCMP_CMP_EQ"}
}

func noBits(index uint, bits uint64) seccompArg {
	return seccompArg{Index: index, Value: bits, Op: "SCMP_CMP_MASKED_EQ"}
}

func masked(index uint, mask, value uint64) seccompArg {
	return seccompArg{Index: index, Value: mask, ValueTwo: value, Op: "SCMP_CMP_MASKED_EQ"}
}

// allow adds a rule; several for one call are alternatives.
func (p *seccompProfile) allow(names []string, args ...seccompArg) {
	names = slices.Clone(names)
	slices.Sort(names)
	p.Syscalls = append(p.Syscalls, seccompRule{Names: names, Action: seccompAllow, Args: args})
}

// allowOld is allow for calls that only amd64 has: on arm64 there is nothing to name.
func (p *seccompProfile) allowOld(names []string, args ...seccompArg) {
	p.allow(names, args...)
	p.Syscalls[len(p.Syscalls)-1].Includes = &seccompIncludes{Arches: []string{"amd64"}}
}

// missing makes calls look as if the kernel had none: callers then fall back to the older call, whose
// arguments a filter can see.
func (p *seccompProfile) missing(names []string) {
	names = slices.Clone(names)
	errno := uint(38) // ENOSYS, on amd64 and arm64
	slices.Sort(names)
	p.Syscalls = append(p.Syscalls, seccompRule{Names: names, Action: seccompErrno, ErrnoRet: &errno})
}

// encode is the profile's canonical JSON: the order of fields is that of the structs.
func (p *seccompProfile) encode() string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		panic(fmt.Sprintf("seccomp profile without a JSON form: %v", err))
	}
	return strings.TrimSpace(b.String())
}

func newProfile() *seccompProfile {
	return &seccompProfile{
		DefaultAction: seccompErrno,
		ArchMap: []seccompArch{
			{Architecture: "SCMP_ARCH_X86_64", SubArchitectures: []string{}},
			{Architecture: "SCMP_ARCH_AARCH64", SubArchitectures: []string{}},
		},
	}
}

// agentProfile is for programs that we did not write.
func agentProfile(unixSockets bool) *seccompProfile {
	p := newProfile()
	p.allow(runtimeCalls)
	p.descriptors()
	p.allow(programCalls)
	p.allowOld(oldCalls)
	p.modes()
	p.processes()
	p.sockets(unixSockets)
	p.missing(missingCalls)
	return p
}

// proxyProfile is for our own binary, which starts no process and makes no file.
func proxyProfile() *seccompProfile {
	p := newProfile()
	p.allow(runtimeCalls)
	p.descriptors()
	p.allowOld([]string{"arch_prctl"})
	p.allow([]string{"openat"}, noBits(2, openCreates))
	p.processes()
	p.inetSockets()
	p.missing(missingCalls)
	return p
}

// Commands of fcntl. Those that every Unix has are below fcntlLinux; of Linux's own, what programs use.
const (
	fcntlLinux    = 1 << 10
	fcntlMask     = 1<<32 - 1 // the kernel looks at no more of the argument
	dupfdCloexec  = 1030
	setPipeSize   = 1031
	getPipeSize   = 1032
	addSeals      = 1033
	getSeals      = 1034
	dupfdQuery    = 1027
	createdQuery  = 1028
	getLease      = 1025
	getRWHint     = 1035
	setRWHint     = 1036
	getFileRWHint = 1037
	setFileRWHint = 1038
)

// descriptors lets a program do with descriptors what it needs, and take no lease or delegation of a file
// (F_SETLEASE, F_SETDELEG): whoever opens that file then, on the host too, waits for as long as a minute, again and
// again, and a read-only worktree is enough to take one.
func (p *seccompProfile) descriptors() {
	p.allow([]string{"fcntl"}, masked(1, fcntlMask&^(fcntlLinux-1), 0))
	for _, command := range []uint64{dupfdCloexec, setPipeSize, getPipeSize, addSeals, getSeals, dupfdQuery, createdQuery, getLease,
		getRWHint, setRWHint, getFileRWHint, setFileRWHint} {
		p.allow([]string{"fcntl"}, masked(1, fcntlMask, command))
	}
}

const (
	setIDBits   = 0o6000     // S_ISUID, S_ISGID
	openCreates = 0o20000100 // O_CREAT, __O_TMPFILE: with either, open has a mode
)

// modes lets files have every mode without set-id bits. open has a mode only when it creates a file;
// otherwise that argument is whatever the register held.
func (p *seccompProfile) modes() {
	p.allow([]string{"fchmod"}, noBits(1, setIDBits))
	p.allow([]string{"fchmodat", "fchmodat2", "mknodat"}, noBits(2, setIDBits))
	p.allow([]string{"openat"}, noBits(3, setIDBits))
	p.allow([]string{"openat"}, noBits(2, openCreates))
	p.allowOld([]string{"chmod", "creat", "mknod"}, noBits(1, setIDBits))
	p.allowOld([]string{"open"}, noBits(2, setIDBits))
	p.allowOld([]string{"open"}, noBits(1, openCreates))
}

// namespaceFlags are the flags of clone that make namespaces: mount, cgroup, UTS, IPC, user, PID,
// network. (CLONE_NEWTIME exists only for clone3 and unshare.)
const namespaceFlags = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000

// processes lets a program start others, without namespaces, and set limits and priorities of itself
// alone: process 1 has the same user, and must not be slowed down or starved by what it guards.
func (p *seccompProfile) processes() {
	p.allow([]string{"clone"}, noBits(0, namespaceFlags))
	p.allow([]string{"prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"}, equal(0, 0))
	p.allow([]string{"setpriority"}, equal(0, 0), equal(1, 0))
	p.allow([]string{"personality"}, equal(0, 0))
	p.allow([]string{"personality"}, equal(0, 0xffffffff)) // asks only
}

// Socket domains, types and protocols.
const (
	afUnix, afInet, afInet6, afNetlink       = 1, 2, 10, 16
	sockStream, sockDgram, sockSeqpacket     = 1, 2, 5
	sockTypeMask                             = 0xf // the rest of the argument are flags
	protoAny, protoTCP, protoUDP, protoMPTCP = 0, 6, 17, 262
	netlinkRoute                             = 0
)

// sockets lets a program open sockets for TCP, UDP, rtnetlink and, when it may, unix sockets.
func (p *seccompProfile) sockets(unix bool) {
	p.inetSockets()
	for _, t := range []uint64{sockStream, sockSeqpacket} {
		p.allow([]string{"socketpair"}, equal(0, afUnix), masked(1, sockTypeMask, t))
	}
	if unix {
		p.allow([]string{"socket"}, equal(0, afUnix))
		// A datagram socket of a pair can send to any path: with unix sockets denied, so is this.
		p.allow([]string{"socketpair"}, equal(0, afUnix), masked(1, sockTypeMask, sockDgram))
	}
}

func (p *seccompProfile) inetSockets() {
	for _, domain := range []uint64{afInet, afInet6} {
		for _, proto := range []uint64{protoAny, protoTCP, protoMPTCP} {
			p.allow([]string{"socket"}, equal(0, domain), masked(1, sockTypeMask, sockStream), equal(2, proto))
		}
		for _, proto := range []uint64{protoAny, protoUDP} {
			p.allow([]string{"socket"}, equal(0, domain), masked(1, sockTypeMask, sockDgram), equal(2, proto))
		}
	}
	p.allow([]string{"socket"}, equal(0, afNetlink), equal(2, netlinkRoute))
}
