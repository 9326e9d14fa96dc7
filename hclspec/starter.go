package hclspec

// StarterName is the file that init writes Starter to.
const StarterName = configName

// Starter is the configuration that init writes into an empty directory. It validates as it stands.
const Starter = `# What may run here, and in what sandbox. The next steps: set the image, then sandplan init, sandplan plan,
# sandplan apply, and: echo 'Review the last commit.' | sandplan run -prompt=- invocation.review

sandplan {
  project = "my-project"
}

# Whose model the agent talks to. The image holds the vendor's CLI, and no shell.
vendor "claude" {
  image = "my-project/agent:1"

  credential "CLAUDE_CODE_OAUTH_TOKEN" {
    source_env = "CLAUDE_CODE_OAUTH_TOKEN"
  }
}

# One agent on one worktree: here this directory, read-only, since that is what the phase "review" allows.
invocation "review" {
  vendor   = vendor.claude
  phase    = phase.review
  worktree = path.root
  timeout  = "15m"

  limits {
    memory = "2GiB"
  }
}

output "proxy" {
  description = "the only address that the agent can reach"
  value       = invocation.review.proxy_address
}
`
