sandplan {
  project = "codeboost"
}

vendor "claude" {
  image = "codeboost/agent:2.1"
  model = "sonnet"

  credential "CLAUDE_CODE_OAUTH_TOKEN" {
    source_env = "CLAUDE_CODE_OAUTH_TOKEN"
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
  worktree = "../checkout/${each.key}"
  timeout  = "30m"

  limits {
    memory = "2GiB"
    cpus   = 1.5
  }
}

output "login_proxies" {
  value = { for k, i in invocation.login : k => i.proxy_address }
}
