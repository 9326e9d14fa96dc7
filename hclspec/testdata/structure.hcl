# What may stand where.
sandplan {
  project = "structure"
  projekt = "x" # ERROR: Unsupported argument
}

sandplan { # ERROR: Duplicate block
  project = "again"
}

vendro "claude" { # ERROR: Unsupported block type
}

terraform {} # ERROR: Unsupported block type

vendor "claude" {
  image = "agent:1"
  modle = "sonnet" # ERROR: Unsupported argument
  creds "X" {}     # ERROR: Unsupported block type
}

vendor "claude" { # ERROR: Duplicate name
  image = "agent:2"
}

vendor { # ERROR: Missing name for vendor
  image = "agent:3"
}

vendor "9lives" { # ERROR: Invalid name
  kind    = "claude"
  image   = "agent:4"
} 

vendor "ünter" { # ERROR: Invalid name
  kind    = "claude"
  image   = "agent:4"
}

phase "review" "twice" {} # ERROR: Extraneous label for phase

phase "fix" {
  runner "test" {
    argv  = ["make", "test"]
    image = "ci:1"
  }
  runner "test" { # ERROR: Duplicate name
    argv  = ["make", "check"]
    image = "ci:1"
  }
  runner "a b" { # ERROR: Invalid name
    argv  = ["make", "check"]
    image = "ci:1"
  }
}

invocation "a" { # ERROR: Missing required argument
  vendor = vendor.claude
  phase  = phase.fix

  limits {}
  limits {} # ERROR: Duplicate block
}

locals {
  a = 1
  b = 2
}

locals {
  b = 3 # ERROR: Duplicate name
  c {} # ERROR: Unexpected "c" block
}

variable "count" {} # ERROR: Invalid name # ERROR: No value for required variable

output "x y" { # ERROR: Invalid name
  value = 1
}

check "empty" {} # ERROR: Check without assertion
