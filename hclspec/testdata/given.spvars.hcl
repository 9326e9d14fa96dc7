object    = { name = "x", size = "huge" } # ERROR: Invalid value for variable
undeclard = "x"                           # WARNING: Value for undeclared variable
variable "number" {}                      # ERROR: Block in variable file
vendor "x" {}                             # ERROR: Block in variable file
