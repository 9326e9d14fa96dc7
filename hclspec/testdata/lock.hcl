sandplan {
  project = "lock"
}
