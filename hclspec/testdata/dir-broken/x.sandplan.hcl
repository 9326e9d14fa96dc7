# ELSEWHERE testdata/dir-broken/sandplan.hcl:1 ERROR: Configuration not readable
sandplan {
  project = "broken"
}
