package vendormock

import (
	"encoding/json"
	"net/http"
	"sort"
	"strings"
)

// Request is one request as it came, its body unpacked.
type Request struct {
	Method string
	Host   string
	Path   string
	Header http.Header
	Body   []byte
}

// IsTurn says that a model is asked, in either vendor's API.
func (r Request) IsTurn() bool {
	return r.Method == http.MethodPost && (r.Path == "/v1/messages" || strings.HasSuffix(r.Path, "/responses"))
}

// Credential is what authorises the request: "Bearer …", "x-api-key …", or "".
func (r Request) Credential() string {
	if key := r.Header.Get("X-Api-Key"); key != "" {
		return "x-api-key " + key
	}
	return r.Header.Get("Authorization")
}

// tool is a tool in any of the forms that the two APIs have.
type tool struct {
	Type  string `json:"type"`
	Name  string `json:"name"`
	Tools []tool `json:"tools"` // of a namespace
}

// Tools are the names of everything that the request offers to the model, sorted. Codex hides some in a
// namespace, and with some models all of them in the input instead of in `tools`.
func (r Request) Tools() []string {
	var body struct {
		Tools []tool          `json:"tools"`
		Input json.RawMessage `json:"input"`
	}
	if json.Unmarshal(r.Body, &body) != nil {
		return []string{"(the body is no JSON)"}
	}
	all := body.Tools
	var items []tool
	_ = json.Unmarshal(body.Input, &items) // it may be a string
	for _, i := range items {
		if i.Type == "additional_tools" {
			all = append(all, i.Tools...)
		}
	}
	out := names(all, "")
	sort.Strings(out)
	return out
}

func names(tools []tool, prefix string) []string {
	out := []string{}
	for _, t := range tools {
		switch {
		case t.Type == "namespace":
			out = append(out, names(t.Tools, prefix+t.Name+"/")...)
		case t.Name == "":
			out = append(out, prefix+t.Type) // a tool that runs at the vendor, such as web_search
		default:
			out = append(out, prefix+t.Name)
		}
	}
	return out
}

// Result is what the CLI told the model of one call.
type Result struct {
	Text string
	// Failed is the CLI's own mark; Codex has none and says it in the text.
	Failed bool
}

// Results are the results that the request holds, in the order of their calls.
func (r Request) Results() []Result {
	var body struct {
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Input json.RawMessage `json:"input"`
	}
	if json.Unmarshal(r.Body, &body) != nil {
		return nil
	}
	var out []Result
	for _, m := range body.Messages {
		out = append(out, results(m.Content)...)
	}
	return append(out, results(body.Input)...)
}

func results(list json.RawMessage) []Result {
	var items []struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"` // Messages
		Output  json.RawMessage `json:"output"`  // Responses
		IsError bool            `json:"is_error"`
	}
	if json.Unmarshal(list, &items) != nil {
		return nil
	}
	var out []Result
	for _, i := range items {
		switch {
		case i.Type == "tool_result":
			out = append(out, Result{Text: textOf(i.Content), Failed: i.IsError})
		case strings.HasSuffix(i.Type, "_call_output"):
			out = append(out, Result{Text: textOf(i.Output)})
		}
	}
	return out
}

// textOf is the text of a content that is a string, or a list of parts.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return string(raw)
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}
