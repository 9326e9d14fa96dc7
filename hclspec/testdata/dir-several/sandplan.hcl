sandplan {
  project = "several"
}

vendor "claude" {
  image = var.image # ERROR: Invalid image
}
