# OPTION version 0.3.1
# OPTION workspace Prod/1
# ELSEWHERE -workspace:1 ERROR: Invalid name
sandplan {
  project          = "Version_1"       # ERROR: Invalid name
  required_version = "about 1"         # ERROR: Invalid version constraint
}
