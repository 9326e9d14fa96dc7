# A team's file: two vendors, phases narrowed to what the team wants, and one reviewer for each service.
#
#   sandplan plan -config=team.hcl -var root=/srv/checkouts

sandplan {
  required_version = ">= 0.1.0"
  project          = "team"
}

provider "docker" {
  subnet_pool = "10.214.0.0/16"
}

variable "root" {
  type        = string
  description = "the directory that holds one checkout per service"
  default     = "../checkouts"
}

variable "services" {
  description = "what is reviewed, by whom, and for how long at most"
  type = map(object({
    directory = string
    strict    = optional(bool, false)
    timeout   = optional(string, "30m")
  }))
  default = {
    auth    = { directory = "auth-service", strict = true }
    billing = { directory = "billing" }
    search  = { directory = "search", timeout = "1h" }
  }
  validation {
    condition     = alltrue([for s in values(var.services) : !startswith(s.directory, "/")])
    error_message = "A service's directory is relative to var.root."
  }
}

variable "fixers" {
  type        = number
  description = "how many agents may write, each in a clone of its own"
  default     = 2
}

locals {
  reviewers = { for name, s in var.services : name => merge(s, { worktree = "${var.root}/${s.directory}" }) }
  rules     = "Name file and line of everything you report. Do not report style."
}

vendor "claude" {
  image = "codeboost/claude:2.1.332"
  model = "sonnet"
  credential "CLAUDE_CODE_OAUTH_TOKEN" {
    source_env = "CLAUDE_CODE_OAUTH_TOKEN"
  }
}

vendor "inhouse" {
  kind    = "custom"
  image   = "registry.corp.example/llm/agent@sha256:6b3b3a4c4d6e1d0f6a54c1b8f7b2c9d5e8a1f0c3b6d9e2f5a8b1c4d7e0f3a6b9"
  command = ["/agent", "--json", "--model", "house-2"]

  host "llm.corp.example" {
    port      = 8443
    addresses = ["10.1.2.3"] # fixed: the only way to reach a private address
  }
  credential "token" {
    source_file = "secrets/llm-token" # relative to this file
  }
}

# What "review" allows at most is built in; this leaves out searching, and approves two commands.
phase "review" {
  tools = ["read", "list"]

  runner "test" {
    argv  = ["npm", "test", "--", "--run"]
    image = "codeboost/ci:22"
  }
  runner "lint" {
    argv    = ["npm", "run", "lint"]
    image   = "codeboost/ci:22"
    timeout = "5m"
  }
}

# A phase of the team's own, held to the ceiling of a built-in one.
phase "audit" {
  base = "planning"
}

invocation "review" {
  for_each = local.reviewers
  vendor   = vendor.claude
  phase    = each.value.strict ? phase.audit : phase.review
  worktree = each.value.worktree
  timeout  = each.value.timeout
  prompt   = "Review the last commit of the service ${each.key}. ${local.rules}"
}

invocation "fix" {
  count    = var.fixers
  vendor   = vendor.inhouse
  phase    = phase.fix
  worktree = "${var.root}/fix-${count.index}"
  user     = "1000:1000"
  limits {
    memory = "4GiB"
    cpus   = 1.5
    pids   = 512

    download = "4GiB" # what all its tunnels together may carry in; left out, nothing bounds that
    tunnels  = 32     # at once
  }
}

output "reviewers" {
  description = "the proxy of each reviewer"
  value       = { for name, i in invocation.review : name => i.proxy_address }
}

output "subnets" {
  value = concat([for i in values(invocation.review) : i.subnet], invocation.fix[*].subnet)
}

check "somebody_is_strict" {
  assert {
    condition     = anytrue([for s in values(var.services) : s.strict])
    error_message = "No service has a strict reviewer."
  }
}
