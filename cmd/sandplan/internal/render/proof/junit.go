package proof

import (
	"encoding/xml"
	"fmt"
	"strings"
	"unicode"

	"github.com/sandplan/sandplan/applier/verify"
)

type suites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Suites   []suite  `xml:"testsuite"`
}

type suite struct {
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr"`
	Skipped  int        `xml:"skipped,attr"`
	Time     string     `xml:"time,attr"`
	Cases    []testCase `xml:"testcase"`
}

type testCase struct {
	Class   string `xml:"classname,attr"`
	Name    string `xml:"name,attr"`
	Failure *fault `xml:"failure,omitempty"`
	Error   *fault `xml:"error,omitempty"`
	Skipped *fault `xml:"skipped,omitempty"`
}

type fault struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit is the report of verify -format=junit: a suite for each invocation, a case for each attempt. What
// escaped is a failure, what is not proven an error.
func JUnit(r verify.Report) string {
	out := suites{Name: "sandplan verify"}
	for _, s := range r.Subjects {
		out.add(newSuite(s))
	}
	if r.Decision != nil {
		out.add(suite{Name: "sandplan verify", Tests: 1, Errors: 1, Time: "0.000",
			Cases: []testCase{{Class: "sandplan verify", Name: "begin", Error: &fault{Message: clean(r.Decision.Error())}}}})
	}
	if r.Unsettled != nil {
		out.add(suite{Name: "sandplan verify", Tests: 1, Errors: 1, Time: "0.000",
			Cases: []testCase{{Class: "sandplan verify", Name: "remove what was made", Error: &fault{Message: clean(r.Unsettled.Error())}}}})
	}
	b, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("a report without an XML form: %v", err))
	}
	return xml.Header + string(b) + "\n"
}

func (s *suites) add(one suite) {
	s.Tests, s.Failures, s.Errors, s.Skipped = s.Tests+one.Tests, s.Failures+one.Failures, s.Errors+one.Errors, s.Skipped+one.Skipped
	s.Suites = append(s.Suites, one)
}

func newSuite(s verify.Subject) suite {
	out := suite{Name: clean(string(s.Addr)), Time: fmt.Sprintf("%.3f", s.Took.Seconds())}
	for _, f := range s.Findings {
		c := testCase{Class: out.Name, Name: f.ID}
		told := &fault{Message: clean(f.Detail), Text: clean(fmt.Sprintf("%s; would be seen at: %s; control: %s (%s); from: %s", f.What, f.Where, f.Control, f.Proof, f.Source))}
		switch f.Status {
		case verify.Escaped:
			c.Failure = told
			out.Failures++
		case verify.Unproven:
			c.Error = told
			out.Errors++
		case verify.Moot:
			c.Skipped = told
			out.Skipped++
		}
		out.Cases = append(out.Cases, c)
	}
	if s.Decision != nil {
		out.Cases = append(out.Cases, testCase{Class: out.Name, Name: "the probe ends by itself", Error: &fault{Message: clean(s.Decision.Error())}})
		out.Errors++
	}
	out.Tests = len(out.Cases)
	return out
}

// clean leaves out what XML cannot hold, and what could steer a terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || r == '\ufffe' || r == '\uffff' {
			return -1
		}
		return r
	}, s)
}
