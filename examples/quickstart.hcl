# The demo: everything happens on this machine, without the internet. The "vendor" is a small TLS server
# at a fixed address, and the agent a small program that tries to get out.

sandplan {
  required_version = ">= 0.1.0"
  project          = "quickstart"
}

provider "docker" {
  subnet_pool = "10.237.0.0/16"
}

variable "worktree" {
  type        = string
  description = "the repository that the agents work on"
}

variable "vendor_address" {
  type        = string
  description = "where the local vendor listens: the gateway of the uplink, unless it is elsewhere"
  default     = "10.237.0.1"
}

variable "user" {
  type        = string
  description = "who the writing agent is: the numbers of user and group that own the worktree"
  default     = "65532:65532"
}

vendor "demo" {
  kind    = "custom"
  image   = "sandplan-demo/agent:1"
  command = ["/agent", "-vendor=https://vendor.sandplan.test:8443/v1/hello"]

  host "vendor.sandplan.test" {
    port      = 8443
    addresses = [var.vendor_address] # fixed: the only way to reach a private address
  }
}

invocation "review" {
  vendor   = vendor.demo
  phase    = phase.review # read-only, whatever the agent tries
  worktree = var.worktree
  prompt   = "Read everything, and change nothing."
  timeout  = "5m"
}

invocation "fix" {
  vendor   = vendor.demo
  phase    = phase.fix
  worktree = var.worktree
  user     = var.user
  prompt   = "Fix what you find."
  timeout  = "5m"
}

output "proxies" {
  description = "the only address that each agent can reach"
  value = {
    review = invocation.review.proxy_address
    fix    = invocation.fix.proxy_address
  }
}

output "review_network" {
  value = invocation.review.network_name
}
