package vendormock

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// answerMessages answers POST /v1/messages.
func answerMessages(w http.ResponseWriter, r Request, script Script) {
	if script.Status != 0 {
		writeJSON(w, script.Status, object{"type": "error", "error": object{"type": "api_error", "message": fmt.Sprintf("mock error %d", script.Status)}})
		return
	}
	var body struct {
		Model  string            `json:"model"`
		Stream bool              `json:"stream"`
		Tools  []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		writeJSON(w, http.StatusBadRequest, object{"type": "error", "error": object{"type": "invalid_request_error", "message": err.Error()}})
		return
	}
	content, stop := object{"type": "text", "text": script.Answer}, "end_turn"
	// The CLI also asks small questions of its own, without tools; those are no turn of the script.
	if n := len(r.Results()); len(body.Tools) > 0 && n < len(script.Calls) {
		c := script.Calls[n]
		content, stop = object{"type": "tool_use", "id": fmt.Sprintf("toolu_%04d", n), "name": c.Name, "input": c.Input}, "tool_use"
	} else if len(body.Tools) > 0 && script.Last != nil {
		script.Last()
	}
	usage := object{"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
	message := object{"id": "msg_1", "type": "message", "role": "assistant", "model": body.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage}
	if !body.Stream {
		message["content"], message["stop_reason"] = []any{content}, stop
		writeJSON(w, http.StatusOK, message)
		return
	}
	begin, delta := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": content["text"]}
	if stop == "tool_use" {
		begin = object{"type": "tool_use", "id": content["id"], "name": content["name"], "input": object{}}
		delta = object{"type": "input_json_delta", "partial_json": string(content["input"].(json.RawMessage))}
	}
	stream(w, []object{
		{"type": "message_start", "message": message},
		{"type": "content_block_start", "index": 0, "content_block": begin},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": 5}},
		{"type": "message_stop"},
	})
}
