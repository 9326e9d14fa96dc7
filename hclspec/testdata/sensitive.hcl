# Secrets may be prompts and credentials, and nothing else.
# OPTION env SANDPLAN_VAR_token=hunter2
sandplan {
  project = "sensitive"
}

variable "token" {
  type      = string
  sensitive = true
  validation {
    condition     = length(var.token) > 1
    error_message = "too short: ${var.token}"
  }
}

locals {
  map = { token = var.token, plain = "x" }
}

vendor "claude" {
  image = "agent:${var.token}" # ERROR: Sensitive value in visible place
  env = {
    A = local.map.plain
    B = local.map.token # ERROR: Sensitive value in visible place
  }
  credential "ANTHROPIC_API_KEY" {
    source_file = "/secrets/${var.token}"
  }
}

invocation "a" {
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv/${var.token}" # ERROR: Sensitive value in visible place
  prompt   = "the token is ${var.token}"
  timeout  = sensitive("30m")    # ERROR: Sensitive value in visible place
  env      = sensitive({ A = "x" }) # ERROR: Sensitive value in visible place
}

output "open" {
  value = local.map # ERROR: Output of a sensitive value
}

output "closed" {
  value     = local.map
  sensitive = true
}

output "error" {
  value = tonumber(var.token) # ERROR: Invalid function argument
}
