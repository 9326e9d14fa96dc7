image = "agent:1"
other = 1 # WARNING: Value for undeclared variable
