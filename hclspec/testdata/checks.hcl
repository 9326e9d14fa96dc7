# Checks warn.
sandplan {
  project = "checks"
}

vendor "claude" {
  image = "agent:1"
}

invocation "a" {
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv"
}

check "holds" {
  assert {
    condition     = length(vendor.claude.image) > 0
    error_message = "never"
  }
}

check "fails" {
  assert {
    condition     = vendor.claude.image == "agent:2" # WARNING: Check failed
    error_message = "The image is ${vendor.claude.image}."
  }
  assert {
    condition     = invocation.a.proxy_address == "x" # not known
    error_message = "never"
  }
}
