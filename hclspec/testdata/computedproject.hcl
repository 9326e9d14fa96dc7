sandplan {
  project = "x-${var.name}" # ERROR: Variables not allowed
}

variable "name" {
  default = "y"
}
