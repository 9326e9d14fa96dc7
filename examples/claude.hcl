# Claude Code reviews a checkout that it cannot write, and runs the approved tests through a runner.
#
#   sandplan init  -config=claude.hcl
#   sandplan apply -config=claude.hcl -var worktree=/path/to/checkout
#   sandplan run   -config=claude.hcl -var worktree=/path/to/checkout invocation.review

sandplan {
  required_version = ">= 0.1.0"
  project          = "claude-example"
}

variable "worktree" {
  type        = string
  description = "the checkout that the agent reads"
}

vendor "claude" {
  image = "codeboost/claude:2.1.332" # holds the CLI and what it links to; no shell
  model = "sonnet"

  credential "CLAUDE_CODE_OAUTH_TOKEN" {
    source_env = "CLAUDE_CODE_OAUTH_TOKEN"
  }
}

phase "review" {
  runner "test" {
    argv    = ["npm", "test", "--", "--run"]
    image   = "codeboost/ci:22"
    timeout = "20m"
  }
}

invocation "review" {
  vendor   = vendor.claude
  phase    = phase.review
  worktree = var.worktree
  timeout  = "30m"

  prompt = <<-EOT
    Read the sources below src. List every place where an error is dropped, with file and line,
    and say for each what the caller should learn.
  EOT

  limits {
    memory = "2GiB"
    cpus   = 2
  }
}

output "proxy" {
  description = "the only address that the agent can reach"
  value       = invocation.review.proxy_address
}
