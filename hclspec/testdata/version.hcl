# OPTION version 0.3.1
sandplan {
  project          = "version"
  required_version = ">= 1.0.0" # ERROR: Unsupported sandplan version
}
