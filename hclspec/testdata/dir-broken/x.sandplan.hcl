# ELSEWHERE testdata/dir-broken/sandplan.hcl:1 ERROR: Configuration not found
sandplan {
  project = "broken"
}
