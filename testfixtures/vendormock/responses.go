package vendormock

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// answerResponses answers POST /v1/responses.
func answerResponses(w http.ResponseWriter, r Request, script Script) {
	if script.Status != 0 {
		writeJSON(w, script.Status, object{"error": object{"type": "server_error", "code": "server_error", "message": fmt.Sprintf("mock error %d", script.Status)}})
		return
	}
	var body struct {
		Model string `json:"model"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		writeJSON(w, http.StatusBadRequest, object{"error": object{"type": "invalid_request_error", "message": err.Error()}})
		return
	}
	n := len(r.Results())
	item := object{"type": "message", "role": "assistant", "id": "m_1", "status": "completed",
		"content": []any{object{"type": "output_text", "text": script.Answer, "annotations": []any{}}}}
	if n < len(script.Calls) {
		item = functionCall(n, script.Calls[n])
	} else if script.Last != nil {
		script.Last()
	}
	response := object{"id": fmt.Sprintf("resp_%d", n), "object": "response", "created_at": time.Now().Unix(), "model": body.Model,
		"status": "in_progress", "output": []any{}}
	completed := object{}
	for k, v := range response {
		completed[k] = v
	}
	completed["status"], completed["output"] = "completed", []any{item}
	completed["usage"] = object{"input_tokens": 10, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": 5,
		"output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 15}
	stream(w, []object{
		{"type": "response.created", "sequence_number": 0, "response": response},
		{"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": item},
		{"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": item},
		{"type": "response.completed", "sequence_number": 3, "response": completed},
	})
}

// functionCall is a call in one of the two forms that tools have: with a JSON object, or with plain text.
func functionCall(n int, c Call) object {
	item := object{"id": fmt.Sprintf("fc_%d", n), "call_id": fmt.Sprintf("call_%d", n), "name": c.Name, "status": "completed"}
	var text string
	if json.Unmarshal(c.Input, &text) == nil {
		item["type"], item["input"] = "custom_tool_call", text
		return item
	}
	item["type"], item["arguments"] = "function_call", string(c.Input)
	return item
}
