package wire

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestLeaseHolder is no test: it is the process that the test below lets stand still.
func TestLeaseHolder(t *testing.T) {
	if os.Getenv("LEASE_HOLDER") == "" {
		return
	}
	l := Hold(os.Stdin, heldFor)
	if _, err := l.Challenge(t.Context()); err != nil {
		t.Fatal(err)
	}
	fmt.Println("held")
	<-l.Done()
	fmt.Println(l.Err())
}

// heldFor is far more than this test can be kept from its work while the other process goes on.
const heldFor = 4 * time.Second

// TestStandstillIsNoSilence: whoever does not run for a while hears nobody, and must not take that for silence.
func TestStandstillIsNoSilence(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^TestLeaseHolder$")
	cmd.Env = append(os.Environ(), "LEASE_HOLDER=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	w, lines := NewWriter(in), bufio.NewScanner(out)
	if err := w.Challenge(Challenge{Nonce: "n", Token: "t"}); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || lines.Text() != "held" {
		t.Fatalf("it says %q", lines.Text())
	}
	for range 2 {
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(heldFor + heldFor/4)
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(heldFor / 10) // a machine that goes on does not begin with the beat
		if err := w.Beat(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || lines.Text() != ErrStopped.Error() {
		t.Errorf("the lease ended with %q", lines.Text())
	}
}
