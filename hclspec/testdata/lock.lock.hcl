dns = ["10.0.0.53", "nowhere"] # ERROR: Invalid lock file

image "codeboost/agent:2.1" {
  digest = "sha256:12" # ERROR: Invalid lock file
  cli    = "2.1.332"
  shell  = false
}

image "codeboost/ci:22" { # ERROR: Invalid lock file
}

image "codeboost/agent:2.1" { # ERROR: Duplicate name
  ids = []
}

image "Not An Image" { # ERROR: Invalid lock file
  ids = ["sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"]
}

image "codeboost/ci:23" {
  ids   = ["sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"]
  shel  = true # ERROR: Unsupported argument
  config {
    env     = { A = null } # ERROR: Invalid lock file
    volumes = "x"          # ERROR: Unsuitable value
  }
}

pin "x" {} # ERROR: Unsupported block type
