# Declarations that need each other.
sandplan {
  project = "cycles"
}

locals {
  a = local.b # ERROR: Reference cycle
  b = [local.c]
  c = "${local.a[0]}-x"
  d = local.d # ERROR: Reference cycle
  e = local.a # uses a cycle, and is none
}

vendor "claude" {
  image = vendor.codex.image # ERROR: Reference cycle
}

vendor "codex" {
  image = vendor.claude.image
  version = "nonsense"
}

invocation "a" {
  vendor   = vendor.claude
  phase    = phase.review
  worktree = local.e
}
