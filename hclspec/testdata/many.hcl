# More instances than one configuration may have.
sandplan {
  project = "many"
}

vendor "claude" {
  image = "agent:1"
}

invocation "a" {
  count    = 3000
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv"
}

invocation "b" { # ERROR: Too many instances
  count    = 3000
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv"
}
