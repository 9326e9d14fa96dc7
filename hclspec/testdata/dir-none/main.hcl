# ELSEWHERE testdata/dir-none:1 ERROR: No configuration files
