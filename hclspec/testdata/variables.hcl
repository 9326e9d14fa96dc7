# Variables and the values that are given for them.
# OPTION env SANDPLAN_VAR_number=many
# OPTION env SANDPLAN_VAR_unheard_of=silent
# OPTION var nothere=x
# OPTION var list=[1,
# OPTION var novalue
# OPTION var two words=x
# OPTION var nonnull=null
# OPTION var port=70000
# OPTION var-file testdata/given.spvars.hcl
# OPTION var-file testdata/missing.spvars.hcl
# ELSEWHERE SANDPLAN_VAR_number:1 ERROR: Invalid value for variable
# ELSEWHERE -var=nothere:1 ERROR: Value for undeclared variable
# ELSEWHERE -var=list:1 ERROR: Missing expression
# ELSEWHERE -var:1 ERROR: Invalid -var argument
# ELSEWHERE -var:1 ERROR: Invalid -var argument
# ELSEWHERE -var=nonnull:1 ERROR: Invalid value for variable
# ELSEWHERE testdata/missing.spvars.hcl:1 ERROR: Variable file not readable
sandplan {
  project = "variables"
}

variable "required" { # ERROR: No value for required variable
  type        = string
  description = "something that nobody knows"
}

variable "number" {
  type = number
}

variable "list" {
  type = list(number)
}

variable "nonnull" {
  type     = list(string)
  nullable = false
}

variable "bad_default" {
  type    = number
  default = "many" # ERROR: Invalid value for variable
}

variable "computed_default" {
  default = var.number # ERROR: Variables not allowed
}

variable "called_default" {
  default = upper("x") # ERROR: Function calls not allowed
}

variable "bad_type" {
  type    = "string" # ERROR: Invalid type specification
  default = "x"
}

variable "bad_flags" {
  default     = "x"
  sensitive   = "maybe"      # ERROR: Unsuitable value
  description = ["a"]        # ERROR: Unsuitable value
}

variable "port" { # ERROR: Invalid value for variable
  type    = number
  validation {
    condition     = var.port < 65536
    error_message = "A port is at most 65535, and ${var.port} is not."
  }
  validation {
    condition     = 1 < 2 # ERROR: Invalid condition
    error_message = "never"
  }
  validation {
    condition     = [var.port] # ERROR: Invalid condition
    error_message = "never"
  }
  validation {
    condition     = var.port > 1
    error_message = ["never"] # ERROR: Unsuitable value
  }
  validation { # ERROR: Missing required argument
    condition = var.port > 1
  }
}

variable "object" {
  type = object({ name = string, size = optional(number, 3) })
}
