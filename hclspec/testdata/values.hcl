# Every kind of value, wrong in each way that somebody may try.
sandplan {
  project = "values"
}

provider "docker" {
  host        = "tcp://10.0.0.1:2375"        # ERROR: Invalid engine host
  subnet_pool = "10.213.7.0/16"              # ERROR: Invalid network
  dns         = ["10.0.0.53", "127.0.0.53"]  # ERROR: Invalid address
}

vendor "claude" {
  image   = "codeboost/agent"   # ERROR: Invalid image
  version = "2.1"               # ERROR: Invalid CLI version
  model   = "--dangerous"       # ERROR: Invalid model
  env = {
    EDITOR_MODE = "vim"
    HTTPS_PROXY = "http://evil" # ERROR: Invalid environment variable
    no_proxy    = "*"           # ERROR: Invalid environment variable
    LD_PRELOAD  = "/work/x.so"  # ERROR: Invalid environment variable
    NODE_OPTIONS = "--require x" # ERROR: Invalid environment variable
    PYTHONPATH  = "/work"       # ERROR: Invalid environment variable
    "A=B"       = "x"           # ERROR: Invalid environment variable
    HOME        = "/work"       # ERROR: Invalid environment variable
    LONG        = join("", [for i in range(1000) : "0123456789012345678901234567890123456789"]) # ERROR: Invalid environment value
  }
}

vendor "codex" {
  image = "Codeboost Agent" # ERROR: Invalid image
  env   = ["A=B"]           # ERROR: Unsuitable value
}

vendor "local" {
  kind    = "custom"
  image   = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
  command = []                 # ERROR: Invalid command

  host "API.example.com" {}    # ERROR: Invalid host name
  host "api.example.com." {}   # ERROR: Invalid host name
  host "*.example.com" {}      # ERROR: Invalid host name
  host "example" {}            # ERROR: Invalid host name
  host "10.0.0.1" {}           # ERROR: Invalid host name
  host "[::1]" {}              # ERROR: Invalid host name
  host "0x7f.1" {}             # ERROR: Invalid host name
  host "exаmple.com" {}        # ERROR: Invalid host name
  host "xn--80ak6aa92e.com" {} # ERROR: Invalid host name
  host "https://x.example" {}  # ERROR: Invalid host name
  host "x.example:443" {}      # ERROR: Invalid host name
  host "-x.example" {}         # ERROR: Invalid host name
  host "a_b.example" {}        # ERROR: Invalid host name
  host "" {}                   # ERROR: Invalid host name

  host "good.example.com" {
    port      = 65536                       # ERROR: Invalid number
    addresses = ["10.1.2.3", "fd00::1"]     # ERROR: Invalid address
    tls       = "perhaps"                   # ERROR: Unsuitable value
  }
  host "other.example.com" {
    port      = 44.3                        # ERROR: Invalid number
    addresses = ["10.1.2.3", "10.1.2.3"]    # ERROR: Invalid address
  }
  host "third.example.com" {
    addresses = ["0.0.0.0"]                 # ERROR: Invalid address
  }
}

phase "review" {
  runner "a" {
    argv    = ["npm test"]  # ERROR: Invalid command
    image   = "ci:1"
    timeout = "10 minutes"  # ERROR: Invalid duration
  }
  runner "b" {
    argv    = ["", "x"]     # ERROR: Invalid command
    image   = null          # ERROR: Unsuitable value
    timeout = 600           # ERROR: Invalid duration
  }
}

invocation "a" {
  vendor    = vendor.codex
  phase     = phase.review
  worktree  = "~/src"        # ERROR: Invalid path
  prompt    = ""             # ERROR: Invalid prompt
  timeout   = "300h"         # ERROR: Invalid duration
  user      = "nobody"       # ERROR: Invalid user
  git       = "readonly"     # ERROR: Invalid choice
  after_run = "re-arm"       # ERROR: Invalid choice

  limits {
    memory = "2G"     # ERROR: Invalid size
    cpus   = 0        # ERROR: Invalid number
    pids   = 1.5      # ERROR: Invalid number
    output = "1KB"    # ERROR: Invalid size
    upload = "9TiB"   # ERROR: Invalid size

    download           = "none" # ERROR: Invalid size
    tunnels            = 641    # ERROR: Invalid number
    tunnels_per_second = 10001  # ERROR: Invalid number
  }
}

invocation "b" {
  vendor    = vendor.codex
  phase     = phase.review
  worktree  = ["a"]          # ERROR: Unsuitable value
  prompt    = "a\u0000b"     # ERROR: Invalid prompt
  timeout   = "500ms"        # ERROR: Invalid duration
  user      = "01:1"         # ERROR: Invalid user
  env       = { A = "a\u0000b" } # ERROR: Invalid environment value
  limits {
    memory = "1KiB"   # ERROR: Invalid size
    cpus   = 0.001    # ERROR: Invalid number
    pids   = "many"   # ERROR: Unsuitable value

    download           = 0   # ERROR: Invalid size
    tunnels            = 0   # ERROR: Invalid number
    tunnels_per_second = 1.5 # ERROR: Invalid number
  }
}

invocation "c" {
  vendor    = vendor.codex
  phase     = phase.review
  worktree  = null           # ERROR: Unsuitable value
  user      = "4294967295:1" # ERROR: Invalid user
  env       = null
  prompt    = null
}
