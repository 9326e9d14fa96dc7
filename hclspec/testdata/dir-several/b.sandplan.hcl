variable "image" {}

vendor "claude" { # ERROR: Duplicate name
  image = "agent:2"
}

locals {
  broken = local.nowhere # ERROR: Reference to undeclared name
}
