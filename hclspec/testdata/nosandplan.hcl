vendor "claude" { # ERROR: Missing sandplan block
  image = "agent:1"
}
