# The rest of a file with syntax errors is read all the same.
# ELSEWHERE testdata/syntax.hcl:13 ERROR: Invalid multi-line string
# ELSEWHERE testdata/syntax.hcl:14 ERROR: Invalid multi-line string
sandplan {
  project = "Syntax" # ERROR: Invalid name
}

vendor "claude" {
  image = # ERROR: Invalid expression
}

vendor "codex" {
  image = "agent:1
}
