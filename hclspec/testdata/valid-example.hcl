# OPTION var worktree=/srv/checkout
sandplan {
  required_version = ">= 0.1.0"
  project          = "codeboost"
}

variable "worktree" {
  type        = string
  description = "the checkout that the agents work on"
}

vendor "claude" {
  image = "codeboost/agent:2.1"
  model = "sonnet"
  credential "CLAUDE_CODE_OAUTH_TOKEN" {
    source_env = "CLAUDE_CODE_OAUTH_TOKEN"
  }
}

vendor "local" {
  kind    = "custom"
  image   = "registry.example/agent@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
  command = ["/agent", "--json"]
  host "llm.corp.example" {
    addresses = ["10.1.2.3"] # fixed: the only way to reach a private address
  }
}

phase "review" {
  runner "test" {
    argv  = ["npm", "test", "--", "--run"]
    image = "codeboost/ci:22"
  }
}

invocation "login" {
  for_each = toset(["auth", "session"])
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "${var.worktree}/${each.key}"
  prompt   = file("files/review.md")
  timeout  = "30m"
  limits {
    memory = "2GiB"
  }
}

output "login_proxies" {
  value = { for k, i in invocation.login : k => i.proxy_address }
}
