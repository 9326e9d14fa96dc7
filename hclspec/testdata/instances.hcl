# for_each and count.
# OPTION var secret=x
sandplan {
  project = "instances"
}

variable "secret" {
  sensitive = true
}

vendor "claude" {
  image = "agent:1"
}

invocation "both" {
  for_each = toset(["a"])
  count    = 1 # ERROR: Invalid for_each
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv"
}

invocation "list" {
  for_each = ["a", "b"] # ERROR: Invalid for_each
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv"
}

invocation "number" {
  for_each = 5 # ERROR: Invalid for_each
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv"
}

invocation "numbers" {
  for_each = toset([1, 2]) # ERROR: Invalid for_each
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv"
}

invocation "null" {
  for_each = null # ERROR: Invalid for_each
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv"
}

invocation "nullelement" {
  for_each = toset(["a", null]) # ERROR: Invalid for_each
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv"
}

invocation "secret" {
  for_each = { (var.secret) = "x" } # ERROR: Invalid for_each
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv"
}

invocation "keys" {
  for_each = {
    ok         = "a"
    ""         = "b" # ERROR: Invalid for_each
    "a\u202eb" = "c" # ERROR: Invalid for_each
  }
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv"
}

invocation "secretcount" {
  count    = var.secret == "x" ? 1 : 2 # ERROR: Invalid count
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv"
}

invocation "half" {
  count    = 1.5 # ERROR: Invalid count
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv"
}

invocation "huge" {
  count    = 1000000000 # ERROR: Invalid count
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv"
}

invocation "text" {
  count    = "many" # ERROR: Invalid count
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv"
}

# No instance, and its mistakes show all the same.
invocation "empty" {
  for_each = {}
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv/${each.key}"
  timeout  = "soon" # ERROR: Invalid duration
}

# The same mistake in every instance is one mistake.
invocation "repeated" {
  count    = 300
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv/${count.index}"
  timeout  = "soon" # ERROR: Invalid duration
}
