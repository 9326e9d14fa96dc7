# The pool, wrong in further ways: there is one provider block per configuration.
sandplan {
  project = "networks"
}

provider "docker" {
  subnet_pool = "8.8.0.0/16" # ERROR: Invalid network
}

provider "podman" {} # ERROR: Unknown provider

provider "docker" {} # ERROR: Duplicate name
