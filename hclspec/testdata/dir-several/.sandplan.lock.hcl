image "agent:1" { # ERROR: Invalid lock file
}
