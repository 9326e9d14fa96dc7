sandplan {
  project = "codeboost"
}

vendor "claude" {
  image  = "codeboost/agent:2.1"
  modell = "sonnet"
}

variable "minutes" {
  type    = number
  default = 30
}

invocation "login" {
  for_each = toset(["auth", "session"])
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "../checkout/${each.key}"
  timeout  = "${var.minutes} minutes"
}
