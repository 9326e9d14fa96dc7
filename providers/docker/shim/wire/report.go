package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Kinds of line, as the field "sandplan" of each.
const (
	kindReport = "report"
	kindReady  = "ready"
	kindExit   = "exit"
)

// MaxLine bounds a report and a ready line.
const MaxLine = 1 << 20

// Report is what a shim found inside, before it runs anything: the first line of standard output.
// Judging it is twofold: the shim's own Checks compare with its declaration, and whoever reads the
// report compares what only the host can know (Mounts, Nonce).
type Report struct {
	Nonce      string      `json:"nonce"`
	Checks     []Check     `json:"checks"`
	Mounts     []Mount     `json:"mounts"`
	Neighbours []Neighbour `json:"neighbours"`
	Addresses  []Address   `json:"addresses"`
	Routes     []Route     `json:"routes"`
	Process    Process     `json:"process"`
	Limits     Limits      `json:"limits"`
	ResolvConf string      `json:"resolv_conf"`
	Hosts      string      `json:"hosts"`
	// Millis is how long the proof took.
	Millis int64 `json:"millis"`
}

// Check is one thing that was tried or read, and whether it is as declared.
type Check struct {
	Name   string `json:"name"` // stable, dotted: net.vendor, mount.work, proc.cap_eff
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"` // what was found, and when not OK what was declared
}

// Mount is one line of mountinfo, with the device and inode that stat sees at the mount point.
type Mount struct {
	Path     string `json:"path"`
	Dev      uint64 `json:"dev"`
	Inode    uint64 `json:"inode"`
	FSType   string `json:"fs_type"`
	Source   string `json:"source"`
	Root     string `json:"root"` // the part of the file system that is mounted
	Options  string `json:"options"`
	ReadOnly bool   `json:"read_only"`
}

// Neighbour is one entry of the neighbour tables.
type Neighbour struct {
	Interface string `json:"interface"`
	IP        string `json:"ip"`
	MAC       string `json:"mac"`
	State     string `json:"state"` // reachable, failed, …
}

// Address is one address of an interface.
type Address struct {
	Interface string `json:"interface"`
	Prefix    string `json:"prefix"` // 10.213.4.3/29
}

// Route is one line of a routing table.
type Route struct {
	Interface string `json:"interface"`
	Dest      string `json:"dest"` // 0.0.0.0/0 is the default route
	Gateway   string `json:"gateway,omitempty"`
}

// Process is what the shim itself runs as.
type Process struct {
	UID        int    `json:"uid"`
	GID        int    `json:"gid"`
	Groups     []int  `json:"groups"`
	CapEff     string `json:"cap_eff"`
	CapBnd     string `json:"cap_bnd"`
	NoNewPrivs bool   `json:"no_new_privs"`
	Seccomp    int    `json:"seccomp"` // 2: a filter
}

// Limits are the limits that the kernel enforces, as far as they can be read from inside; -1 is none.
type Limits struct {
	Memory int64   `json:"memory"`
	PIDs   int64   `json:"pids"`
	CPUs   float64 `json:"cpus"`
}

// Failed are the checks that are not as declared.
func (r Report) Failed() []Check {
	var out []Check
	for _, c := range r.Checks {
		if !c.OK {
			out = append(out, c)
		}
	}
	return out
}

// Ready is the first line of a proxy's standard output.
type Ready struct {
	Nonce      string    `json:"nonce"`
	Listen     string    `json:"listen"` // address and port
	Addresses  []Address `json:"addresses"`
	Routes     []Route   `json:"routes"`
	ResolvConf string    `json:"resolv_conf"`
	Hosts      string    `json:"hosts"`
	Checks     []Check   `json:"checks"`
}

// Failed are the checks that are not as declared.
func (r Ready) Failed() []Check { return Report{Checks: r.Checks}.Failed() }

// WriteReport writes the report as one line.
func WriteReport(w io.Writer, r Report) error {
	return writeLine(w, struct {
		Kind string `json:"sandplan"`
		Report
	}{kindReport, r})
}

// ParseReport reads a line that WriteReport wrote in answer to a challenge with this nonce.
func ParseReport(line []byte, nonce string) (Report, error) {
	var v struct {
		Kind string `json:"sandplan"`
		Report
	}
	if err := parseLine(line, &v, &v.Kind, kindReport); err != nil {
		return Report{}, err
	}
	if v.Nonce != nonce {
		return Report{}, errors.New("the report answers another challenge")
	}
	return v.Report, nil
}

// WriteReady writes the ready line.
func WriteReady(w io.Writer, r Ready) error {
	return writeLine(w, struct {
		Kind string `json:"sandplan"`
		Ready
	}{kindReady, r})
}

// ParseReady reads a line that WriteReady wrote in answer to a challenge with this nonce.
func ParseReady(line []byte, nonce string) (Ready, error) {
	var v struct {
		Kind string `json:"sandplan"`
		Ready
	}
	if err := parseLine(line, &v, &v.Kind, kindReady); err != nil {
		return Ready{}, err
	}
	if v.Nonce != nonce {
		return Ready{}, errors.New("the ready line answers another challenge")
	}
	return v.Ready, nil
}

func writeLine(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) >= MaxLine {
		return fmt.Errorf("a line of %d bytes is too long, at most %d are allowed", len(b), MaxLine)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

func parseLine(line []byte, into any, kind *string, want string) error {
	if len(line) > MaxLine {
		return fmt.Errorf("%s line of %d bytes, at most %d are allowed", want, len(line), MaxLine)
	}
	if err := decode(bytes.TrimSuffix(line, []byte("\n")), into); err != nil {
		return fmt.Errorf("%s line: %w; it begins %.80q", want, err, line)
	}
	if *kind != want {
		return fmt.Errorf("a %q line came where the %s line was due", *kind, want)
	}
	return nil
}
