# A phase narrows what it is based on.
sandplan {
  project = "phases"
}

phase "review" {
  base     = "fix"                    # ERROR: Attribute without effect
  writable = true                     # ERROR: Phase widens its base
  tools    = ["read", "raed", "edit"] # ERROR: Invalid tool
}

phase "planning" {
  runner "test" { # ERROR: Phase widens its base
    argv  = ["make"]
    image = "ci:1"
  }
}

phase "reviw" { # ERROR: Phase without base
}

phase "mine" {
  base  = "exekute" # ERROR: Invalid choice
  tools = ["any"]
}

phase "careful" {
  base     = "fix"
  writable = false
  tools    = ["read", "read"] # ERROR: Invalid tool
}
