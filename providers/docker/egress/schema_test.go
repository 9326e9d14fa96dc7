package egress

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

const schemaFile = "../../../docs/schema/egress-log.json"

// logSchema is the published one; every line that a test reads is held to it.
var logSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	return c.Compile(schemaFile)
})

func checkLine(line string) error {
	s, err := logSchema()
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

func TestSchemaRefuses(t *testing.T) {
	const head = `{"seq":1,"time":"2026-01-02T03:04:05Z","invocation":"invocation.a","up":0,"down":0,"duration_ms":0,`
	tests := []struct {
		line   string
		ok     bool
		reason string
	}{
		{head + `"event":"decision","tunnel":1,"decision":"refuse","reason":"not_http"}`, true, "a refusal"},
		{head + `"event":"decision","tunnel":1,"decision":"refuse","reason":"whim"}`, false, "a reason that nobody knows"},
		{head + `"event":"decision","tunnel":1,"decision":"refuse"}`, false, "no reason"},
		{head + `"event":"decision","tunnel":1,"decision":"maybe","reason":"not_http"}`, false, "no decision"},
		{head + `"event":"closed","tunnel":1,"host":"a","port":1,"address":"b","reason":"closed","payload":"x"}`, false, "never the payload"},
		{head + `"event":"repeated","host":"a","port":1,"address":"b","sni":"c","decision":"refuse","reason":"sni_differs","count":2}`, true, "like which one"},
		{head + `"event":"unlisted","decision":"refuse","reason":"not_http","count":2}`, true, "no more is known"},
		{head + `"event":"unlisted","host":"a","decision":"refuse","reason":"not_http","count":2}`, false, "a host that is listed"},
		{head + `"event":"unlisted","decision":"allow","reason":"not_http","count":2}`, false, "what is let through always has a line"},
		{head + `"event":"end","error":"x","counts":{"not_http":2}}`, true, "the last line"},
		{head + `"event":"end","error":"x","counts":{"whim":2}}`, false, "a reason that nobody knows"},
		{strings.Replace(head, `"seq":1`, `"seq":0`, 1) + `"event":"trouble","error":"x"}`, false, "lines count from 1"},
	}
	for _, tt := range tests {
		if err := checkLine(tt.line); (err == nil) != tt.ok {
			t.Errorf("%s: %v (%s)", tt.line, err, tt.reason)
		}
	}
}

// TestSchemaIsWhole holds the page to the program: every field, every event, every reason, and no other.
func TestSchemaIsWhole(t *testing.T) {
	b, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Properties map[string]struct{ Enum []string }
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	entry := reflect.TypeFor[Entry]()
	for i := range entry.NumField() {
		name, _, _ := strings.Cut(entry.Field(i).Tag.Get("json"), ",")
		if _, ok := doc.Properties[name]; !ok {
			t.Errorf("the field %s is not described", name)
		}
		delete(doc.Properties, name)
	}
	for name := range doc.Properties {
		t.Errorf("the field %s is described and does not exist", name)
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	var reasons, events []string
	for _, r := range reason.All() {
		reasons = append(reasons, string(r))
	}
	if got := doc.Properties["reason"].Enum; !slices.Equal(got, reasons) {
		t.Errorf("reasons %q, want %q", got, reasons)
	}
	for _, e := range []Event{EventDecision, EventClosed, EventRepeated, EventUnlisted, EventLimit, EventTrouble, EventEnd} {
		events = append(events, string(e))
	}
	if got := doc.Properties["event"].Enum; !slices.Equal(got, events) {
		t.Errorf("events %q, want %q", got, events)
	}
}

// TestPageNamesEveryLimit holds docs/egress.md to the limits.
func TestPageNamesEveryLimit(t *testing.T) {
	page, err := os.ReadFile("../../../docs/egress.md")
	if err != nil {
		t.Fatal(err)
	}
	limits := reflect.TypeFor[Limits]()
	for i := range limits.NumField() {
		if name := limits.Field(i).Tag.Get("json"); !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the limit %s is not documented", name)
		}
	}
}
