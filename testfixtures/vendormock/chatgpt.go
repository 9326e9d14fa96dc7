package vendormock

import (
	"net/http"
	"strings"
)

// backend is where ChatGPT's own API begins, beside which Responses stands for whoever has logged in.
const backend = "/backend-api/"

// answerBackend answers what Codex asks before the first turn of a login: which workspace the account is
// of, and where that is served. Without an answer in this form it asks no model (seen in 0.171.0).
func answerBackend(w http.ResponseWriter, r Request) {
	account := r.Header.Get("Chatgpt-Account-Id")
	switch {
	case strings.HasSuffix(r.Path, "/wham/accounts/check"):
		writeJSON(w, http.StatusOK, object{
			"accounts": []object{{
				"id": account, "name": "mock", "plan_type": "pro", "structure": "personal",
				"workspace_backend_origin": "https://chatgpt.com", "account_routing_override": "NO_CONSTRAINT",
			}},
			"account_ordering": []string{account}, "default_account_id": account,
		})
	case strings.HasSuffix(r.Path, "/wham/settings/user"):
		writeJSON(w, http.StatusOK, object{})
	default:
		writeJSON(w, http.StatusNotFound, object{"detail": "the mock has no " + r.Path})
	}
}
