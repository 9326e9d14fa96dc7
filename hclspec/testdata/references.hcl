# Names that lead nowhere, or that cannot be used where they are.
sandplan {
  project = "references"
}

variable "worktree" {
  default = "/srv"
}

vendor "claude" {
  image = "agent:1"
}

invocation "many" {
  for_each = { auth = "a", session = "b" }
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/srv/${each.key}/${each.kee}" # ERROR: Invalid reference
}

invocation "counted" {
  count    = 2
  vendor   = vendor.cloude                  # ERROR: Reference to undeclared name
  phase    = phase.rewiev                   # ERROR: Reference to undeclared name
  worktree = "/srv/${count.index}/${each.key}" # ERROR: Invalid reference
}

invocation "single" {
  vendor   = "claude"               # ERROR: Not a reference
  phase    = "revieu"               # ERROR: Not a reference
  worktree = "${var.wroktree}/x"    # ERROR: Reference to undeclared name
  prompt   = "${count.index}"       # ERROR: Invalid reference
  env = {
    A = invocation.many["auth"].proxy_address # ERROR: Invalid reference
    B = local.nothing                         # ERROR: Reference to undeclared name
    C = terraform.workspace                   # ERROR: Invalid reference
    D = path.module                           # ERROR: Invalid reference
    E = sandplan.workspcae                    # ERROR: Invalid reference
    F = vendor.claude.imgae                   # ERROR: Invalid reference
    G = phase.review.tool                     # ERROR: Invalid reference
    H = keys(vendor)                          # ERROR: Invalid reference
    I = vra.worktree                          # ERROR: Invalid reference
    J = env.HOME                              # ERROR: Invalid reference
    K = local                                 # ERROR: Invalid reference
  }
}

invocation "strange" {
  vendor   = phase.review   # ERROR: Not a reference
  phase    = 5              # ERROR: Not a reference
  worktree = "/srv"
}

invocation "forged" {
  # an object that looks like a vendor
  vendor   = { name = "evil", kind = "custom", image = "x:1", version = "", model = "", hosts = tolist(["a"]) } # ERROR: Not a reference
  phase    = phase.review
  worktree = "/srv"
}

output "a" {
  value = invocation.many.proxy_address # ERROR: Invalid reference
}
output "b" {
  value = invocation.many["atuh"].proxy_address # ERROR: Invalid reference
}
output "c" {
  value = invocation.counted[2].proxy_address # ERROR: Invalid reference
}
output "d" {
  value = invocation.single.proxy_adress # ERROR: Invalid reference
}
output "e" {
  value = invocation.sinlge.proxy_address # ERROR: Reference to undeclared name
}
output "f" {
  value = uper("x") # ERROR: Call to unknown function
}
output "g" {
  value = invocation["many"]["auth"].subnet
}
