# Checks that cannot be evaluated.
sandplan {
  project = "checks"
}

check "wrong" {
  assert {
    condition     = "perhaps"   # ERROR: Invalid condition
    error_message = "never"
  }
  assert {
    condition     = 1 == 2
    error_message = local.gone  # ERROR: Reference to undeclared name
  }
}
