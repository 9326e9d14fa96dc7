# What no honest configuration needs.
sandplan {
  project = "bounds"
}

locals {
  number = 1e99999 # ERROR: Number out of range
  twice0 = "0123456789012345678901234567890123456789"
  twice1 = join("", [for i in range(1000) : local.twice0])
  twice2 = join("", [for i in range(1000) : local.twice1]) # ERROR: Value too large
  twice3 = join("", [for i in range(1000) : local.twice2])
  twice4 = local.twice3
}
