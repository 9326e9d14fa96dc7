# What belongs to which kind of vendor.
sandplan {
  project = "vendors"
}

vendor "cluade" { # ERROR: Vendor without kind
  image = "agent:1"
}

vendor "mine" {
  kind  = "costum" # ERROR: Invalid choice
  image = "agent:1"
}

vendor "claude" {
  image   = "agent:1"
  command = ["/bin/sh"]                           # ERROR: Attribute without effect
  hosts   = ["api.anthropic.com", "evil.example"] # ERROR: Invalid choice of hosts
  host "evil.example" {}                          # ERROR: Attribute without effect

  credential "CLAUDE_CODE_OAUTH" { # ERROR: Unknown credential
    source_env = "X"
  }
  credential "ANTHROPIC_API_KEY" { # ERROR: Credential needs one source
  }
}

vendor "codex" {
  image = "agent:1"
  hosts = [] # ERROR: Invalid choice of hosts
  credential "OPENAI_API_KEY" {
    source_env  = "OPENAI_API_KEY"
    source_file = "/run/secrets/key" # ERROR: Credential needs one source
  }
  credential "auth.json" {
    source_env = "sk-abc123" # ERROR: Invalid environment variable
  }
}

vendor "local" { # ERROR: Vendor without command # ERROR: Vendor without host
  kind    = "custom"
  image   = "agent:1"
  version = "1.0.0"     # ERROR: Attribute without effect
  model   = "x"         # ERROR: Attribute without effect
  hosts   = ["x.y"]     # ERROR: Attribute without effect
}

vendor "other" {
  kind    = "custom"
  image   = "agent:1"
  command = ["/agent"]
  host "x.example" {}
  host "x.example" { # ERROR: Duplicate name
    port = 443
  }
  host "x.example" {
    port = 8443
  }
  credential "../escape" { # ERROR: Invalid name
    source_env = "X"
  }
  credential "twice" {
    source_env = "X"
  }
  credential "twice" { # ERROR: Duplicate name
    source_env = "X"
  }
}
